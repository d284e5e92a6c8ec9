"""Where reading begins when nothing was read before: text a person writes, to the kernel's.

`earliest`, `latest`, a time (`2026-11-15T10:05`, UTC where no zone is given: the first message
published then or later, by partition) or `messages:0=12:5,1=13:0`, which is the ledger and the
entry by partition (those that are not named begin at their earliest).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from headgate.connectors.pulsar.message_ids import find_entry_id
from headgate.connectors.starts import find_start, kernel_time, start_of_time
from headgate.errors import HeadgateError

MESSAGES = "messages:"
EXAMPLE = "messages:0=12:5,1=13:0"


def check_start(start: object, *, topic: str) -> str | None:
    """Return a start as text that reads back as the same: a time in UTC, entries by partition.

    Args:
        start: Text, a datetime, or `ledger:entry` by partition.
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
            return _messages(start, topic)
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
    return checked if checked.startswith(MESSAGES) else kernel_time(checked)


def _checked(text: str, topic: str) -> str:
    if text.startswith(MESSAGES):
        pairs = (pair.partition("=") for pair in text.removeprefix(MESSAGES).split(","))
        return _messages({number.strip(): entry.strip() for number, _, entry in pairs}, topic)
    found = find_start(text)
    if found is None:
        raise _bad_start(topic, repr(text))
    return found


def _messages(entries: Mapping[object, object], topic: str) -> str:
    pairs = []
    for partition, text in entries.items():
        entry = find_entry_id(text)
        if not _is_number(partition) or entry is None or entry.ledger < 0:
            raise _bad_start(topic, f"{partition}={text}")
        pairs.append((int(str(partition)), entry))
    if not pairs:
        raise _bad_start(topic, "{}")
    return MESSAGES + ",".join(f"{partition}={entry}" for partition, entry in sorted(pairs))


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _bad_start(topic: str, found: str) -> HeadgateError:
    of = f"topic {topic!r}" if topic else "a topic"
    return HeadgateError(
        "BAD_TOPIC",
        f"cannot begin to read {of} at {found}: it is neither a word, nor a time, nor a message "
        "by partition",
        hint=f"use earliest, latest, 2026-11-15T10:05:00, or {EXAMPLE}",
    )
