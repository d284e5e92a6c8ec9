"""Checks whether a Pulsar broker responds: two requests to its admin API."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from http.client import HTTPException

# The broker is up, and has created the default namespace.
_QUESTIONS = ("brokers/ready", "namespaces/public/default")


def is_serving(
    admin: str,
    *,
    within: timedelta,
    headers: Mapping[str, str] | None = None,
    trust: ssl.SSLContext | None = None,
) -> bool:
    """Return True if the broker with this admin API accepts requests of clients.

    It listens before it is ready: a client that connects too early waits for long.

    Args:
        admin: The address of its admin API, such as http://127.0.0.1:8080.
        trust: The authority of its certificate, if it is secured.
    """
    # This machine is never reached through a proxy.
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
