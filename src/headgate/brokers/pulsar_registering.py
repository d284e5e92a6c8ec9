"""Detects a Pulsar broker whose storage registers itself over and over.

A killed broker leaves the entry of its storage behind. The next broker deletes and creates it, and
sometimes mistakes its own deletion for another's: it creates the entry again, notices that
deletion, and so on without end (apache/pulsar#17759). It responds, but finds its storage only at
times. A clean stop deletes the entry, and the next start works.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from headgate._clock import Clock

_SIGN = b"Lock on resource /ledgers/available/"
# A normal start has one or two; the loop has hundreds per second.
_MANY = 20
_TAIL = 128 * 1024
_LOOK_AGAIN = timedelta(seconds=1)


def is_registering(log: Path, clock: Clock) -> bool:
    """Return True if a broker's log shows that its storage registers over and over."""
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
