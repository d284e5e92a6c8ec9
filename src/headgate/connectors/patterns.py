"""Topics that are a pattern and match several topics."""

from __future__ import annotations

import re

from headgate.errors import HeadgateError
from headgate.flow.topics import Topic


def has_name(topic: Topic, name: str) -> bool:
    """Return True if a topic has a name, or its pattern matches it."""
    if topic.pattern is None:
        return topic.name == name
    return re.fullmatch(topic.pattern, name) is not None


def check_writable(topic: Topic, *, instead: str) -> None:
    """Refuse a topic that is a pattern.

    Args:
        instead: A topic that can be written, as Python code.

    Raises:
        HeadgateError: BAD_TOPIC.
    """
    if topic.pattern is not None:
        raise HeadgateError(
            "BAD_TOPIC",
            f"cannot write to topic {topic.name!r}: it is the pattern {topic.pattern!r}, and "
            "rows must go to a single topic",
            hint=f"write to {instead}",
        )


def share_server(servers: str, others: str) -> bool:
    """Return True if two lists of servers have a server in common."""
    first, second = (set(text.rpartition("//")[2].split(",")) for text in (servers, others))
    return not first.isdisjoint(second)
