"""Checks whether a Pulsar broker works: its admin API responds, and its storage is registered."""

from __future__ import annotations

import urllib.request
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path

from headgate._clock import Clock
from headgate.brokers.pulsar_settings import Security

# The broker is up, and has created the default namespace.
_QUESTIONS = ("brokers/ready", "namespaces/public/default")

_SIGN = b"Lock on resource /ledgers/available/"
# A normal start has one or two; the loop has hundreds per second.
_MANY = 20
_TAIL = 128 * 1024
_LOOK_AGAIN = timedelta(seconds=1)


def is_serving(admin: str, *, within: timedelta, security: Security | None = None) -> bool:
    """Return True if the broker with this admin API accepts requests of clients.

    It listens before it is ready: a client that connects too early waits for long.

    Args:
        admin: The address of its admin API, such as http://127.0.0.1:8080.
        security: The login of a client, if it is secured.
    """
    headers = {} if security is None else security.headers()
    trust = None if security is None else security.trust()
    # This machine is never reached through a proxy.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
    )
    try:
        for question in _QUESTIONS:
            request = urllib.request.Request(f"{admin}/admin/v2/{question}", headers=headers)
            opener.open(request, timeout=within.total_seconds()).close()
    except (OSError, HTTPException):
        return False
    return True


def is_registering(log: Path, clock: Clock) -> bool:
    """Return True if a broker's log shows that its storage registers over and over.

    A killed broker leaves the entry of its storage behind. The next broker deletes and creates it,
    and sometimes takes its own deletion for that of another broker: it creates the entry again,
    notices that deletion, and so on without end (apache/pulsar#17759). It responds, but finds its
    storage only at times. A clean stop deletes the entry, and the next start works.
    """
    before = _signs(log)
    if len(before) < _MANY:
        return False
    # These may belong to the previous process: then no more follow.
    clock.sleep(_LOOK_AGAIN)
    after = _signs(log)
    return len(after) >= _MANY and after[-1] != before[-1]


def _signs(log: Path) -> list[bytes]:
    try:
        with log.open("rb") as content:
            content.seek(max(0, log.stat().st_size - _TAIL))
            tail = content.read()
    except FileNotFoundError:
        # The log is being rolled.
        return []
    return [line for line in tail.splitlines() if _SIGN in line]
