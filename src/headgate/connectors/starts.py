"""Where reading begins when nothing was read before: what is the same on every broker.

`earliest`, `latest`, or a time (`2026-11-15T10:05`, UTC where no zone is given: the first record
of that time or later, by partition). Each broker has positions of its own besides.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

WORDS = ("earliest", "latest")

_TIMESTAMP = re.compile(r"timestamp:[0-9]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def find_start(text: str) -> str | None:
    """Return a start as text that reads back as the same, or None where it is no word or time."""
    if text in WORDS or _TIMESTAMP.fullmatch(text):
        return text
    try:
        return start_of_time(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        return None


def start_of_time(moment: datetime) -> str:
    """Return a time as text, in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat()


def kernel_time(start: str) -> str:
    """Return what `find_start` returned in the words of the kernel's sources."""
    if start in WORDS or start.startswith("timestamp:"):
        return start
    return f"timestamp:{(datetime.fromisoformat(start) - _EPOCH) // timedelta(milliseconds=1)}"
