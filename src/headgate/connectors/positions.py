"""Positions of any log, measured from outside: each connector knows its own."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors.files import positions as files
from headgate.connectors.files.descriptor import Files
from headgate.connectors.kafka import positions as kafka
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.pulsar import positions as pulsar
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.flow.topics import Topic


def count_between(topic: Topic, start: str | None, end: str | None) -> int | None:
    """Return how many records lie between two positions; None where that cannot be told.

    On Kafka it is at most so many, since offsets have gaps; on Pulsar it is at least so many,
    since an entry may hold many records.

    Args:
        start: None for the topic's beginning.
        end: None for the end of what has been read.
    """
    match topic:
        case Files():
            return files.count_between(Path(topic.path), start, end)
        case Kafka():
            return None if end is None else kafka.count_between(start, end)
        case Pulsar():
            return None if end is None else pulsar.count_between(start, end)
        case _:
            return None


def has_reached(topic: Topic, position: str, target: str | None) -> bool:
    """Tell whether a position lies at or behind another; one that is not known is no hurdle."""
    match topic:
        case Kafka():
            return kafka.has_reached(position, target)
        case Pulsar():
            return pulsar.has_reached(position, target)
        case _:
            return files.has_reached(position, target)
