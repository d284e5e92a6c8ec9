"""Topics that stand for every topic whose name a pattern matches."""

from __future__ import annotations

import re

from headgate.errors import HeadgateError
from headgate.flow.topics import Topic


def has_name(topic: Topic, name: str) -> bool:
    """Tell whether a topic is the one of a name, or stands for it."""
    if topic.pattern is None:
        return topic.name == name
    return re.fullmatch(topic.pattern, name) is not None


def check_writable(topic: Topic, *, instead: str) -> None:
    """Refuse a topic that stands for many.

    Args:
        instead: One that can be written, as Python has it.

    Raises:
        HeadgateError: BAD_TOPIC.
    """
    if topic.pattern is not None:
        raise HeadgateError(
            "BAD_TOPIC",
            f"cannot write to topic {topic.name!r}: it stands for every topic that matches "
            f"{topic.pattern!r}, and rows go to one",
            hint=f"write to {instead}",
        )


def share_server(servers: str, others: str) -> bool:
    """Tell whether two lists of servers have one in common."""
    first, second = (set(each.rpartition("//")[2].split(",")) for each in (servers, others))
    return not first.isdisjoint(second)
