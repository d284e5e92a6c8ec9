"""Whether a Pulsar broker answers: two questions to its administration."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from http.client import HTTPException

# The broker is up, and has made the namespace that users find there.
_QUESTIONS = ("brokers/ready", "namespaces/public/default")


def is_serving(
    admin: str,
    *,
    within: timedelta,
    headers: Mapping[str, str] | None = None,
    trust: ssl.SSLContext | None = None,
) -> bool:
    """Tell whether the broker with this administration takes requests of clients.

    It listens before it can do anything: a client that comes too early waits in vain, for long.

    Args:
        admin: The address of its administration, such as http://127.0.0.1:8080.
        trust: Who may have signed its certificate, where it is secured.
    """
    # Whatever proxy the environment names, this machine is reached without.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
    )
    try:
        for question in _QUESTIONS:
            request = urllib.request.Request(f"{admin}/admin/v2/{question}", headers=headers or {})
            opener.open(request, timeout=within.total_seconds()).close()
    except (OSError, HTTPException):
        return False
    return True
