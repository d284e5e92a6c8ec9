"""Whether the storage of a Pulsar broker registers itself over and over.

A broker that was killed leaves the entry of its storage behind. The next one removes and makes it,
and now and then takes its own removal for somebody else's: it makes the entry anew, hears of that
removal, and so on without end (apache/pulsar#17759). It answers, but finds its storage now and not
then. Once it is stopped in order, the entry is gone, and the next start is sound.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from headgate._clock import Clock

_SIGN = b"Lock on resource /ledgers/available/"
# A sound start has one or two; the other has hundreds a second.
_MANY = 20
_TAIL = 128 * 1024
_LOOK_AGAIN = timedelta(seconds=1)


def is_registering(log: Path, clock: Clock) -> bool:
    """Tell from a broker's log whether its storage is being registered again and again."""
    before = _signs(log)
    if len(before) < _MANY:
        return False
    # These may be of the process before: then no more are coming.
    clock.sleep(_LOOK_AGAIN)
    after = _signs(log)
    return len(after) >= _MANY and after[-1] != before[-1]


def _signs(log: Path) -> list[bytes]:
    try:
        with log.open("rb") as content:
            content.seek(max(0, log.stat().st_size - _TAIL))
            tail = content.read()
    except FileNotFoundError:
        # It is being rolled.
        return []
    return [line for line in tail.splitlines() if _SIGN in line]
