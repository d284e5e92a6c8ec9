"""Creation of a flow's embedded topics."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors.files.descriptor import Files
from headgate.connectors.setup import SetupOptions, TopicRole, find_problems, wanted_topic
from headgate.connectors.topics import WantedTopic
from headgate.flow.schema import Schema

__all__ = ["OPTIONS", "find_companions", "find_problems", "wanted"]

OPTIONS: frozenset[str] = frozenset()


def find_companions(_topic: Files) -> tuple[()]:
    """Return nothing: rows need no other topic."""
    return ()


def wanted(
    topic: Files, role: TopicRole, options: SetupOptions, _schema: Schema | None = None
) -> WantedTopic:
    """Return the settings of a topic; it keeps every record, and has no other settings."""
    partitions = wanted_topic(topic.name, role, options).partitions
    return WantedTopic(name=Path(topic.path).name, partitions=partitions)
