"""Positions of any log, measured from outside: each connector knows its own."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors.files import positions as files
from headgate.connectors.files.descriptor import Files
from headgate.connectors.kafka import positions as kafka
from headgate.connectors.kafka.descriptor import Kafka
from headgate.flow.topics import Topic


def count_between(topic: Topic, start: str | None, end: str | None) -> int | None:
    """Return how many records lie between two positions; None where that cannot be told.

    On Kafka it is at most so many: offsets have gaps.

    Args:
        start: None for the topic's beginning.
        end: None for the end of what has been read.
    """
    match topic:
        case Files():
            return files.count_between(Path(topic.path), start, end)
        case Kafka():
            return None if end is None else kafka.count_between(start, end)
        case _:
            return None


def has_reached(topic: Topic, position: str, target: str | None) -> bool:
    """Tell whether a position lies at or behind another; one that is not known is no hurdle."""
    if isinstance(topic, Kafka):
        return kafka.has_reached(position, target)
    return files.has_reached(position, target)
