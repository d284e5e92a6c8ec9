"""Where reading begins when nothing was read before: text a person writes, to the kernel's.

`earliest`, `latest`, a time (`2026-11-15T10:05`, UTC where no zone is given: the first record
of that time or later, by partition) or `offsets:0=15,1=20` (partitions that are not named begin
at their earliest).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from headgate.connectors.starts import find_start, kernel_time, start_of_time
from headgate.errors import HeadgateError

OFFSETS = "offsets:"
EXAMPLE = "offsets:0=15,1=20"

_OFFSETS = re.compile(r"offsets:[0-9]+=[0-9]+(?:,[0-9]+=[0-9]+)*")


def check_start(start: object, *, topic: str) -> str | None:
    """Return a start as text that reads back as the same: a time in UTC, offsets by partition.

    Args:
        start: Text, a datetime, or offsets by partition.
        topic: The topic's name, for the message.

    Raises:
        HeadgateError: BAD_TOPIC.
    """
    match start:
        case None:
            return None
        case str():
            return _checked(start.strip(), topic)
        case datetime():
            return start_of_time(start)
        case Mapping():
            return _offsets(start, topic)
        case _:
            raise _bad_start(topic, repr(start))


def kernel_start(start: str) -> str:
    """Return a start in the words of the kernel's source; its own words stay as they are.

    Args:
        start: What `check_start` returns, or the JSON of a position.
    """
    if start.startswith("{"):
        return start
    checked = _checked(start.strip(), "")
    return checked if checked.startswith(OFFSETS) else kernel_time(checked)


def _checked(text: str, topic: str) -> str:
    if _OFFSETS.fullmatch(text):
        pairs = (pair.split("=") for pair in text.removeprefix(OFFSETS).split(","))
        return _offsets({int(partition): int(offset) for partition, offset in pairs}, topic)
    found = find_start(text)
    if found is None:
        raise _bad_start(topic, repr(text))
    return found


def _offsets(offsets: Mapping[object, object], topic: str) -> str:
    pairs = []
    for partition, offset in offsets.items():
        if not (_is_count(partition) and _is_count(offset)):
            raise _bad_start(topic, f"{partition!r}: {offset!r}")
        pairs.append((int(str(partition)), int(str(offset))))
    if not pairs:
        raise _bad_start(topic, "{}")
    return OFFSETS + ",".join(f"{partition}={offset}" for partition, offset in sorted(pairs))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _bad_start(topic: str, found: str) -> HeadgateError:
    of = f"topic {topic!r}" if topic else "a topic"
    return HeadgateError(
        "BAD_TOPIC",
        f"cannot begin to read {of} at {found}: it is neither a word, nor a time, nor offsets",
        hint=f"use earliest, latest, 2026-11-15T10:05:00, or {EXAMPLE}",
    )
