"""Positions on Kafka in the kernel's format: the next offset of each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.connectors.broker.positions import find_unread, parse_topics
from headgate.connectors.broker.topic import has_name
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.kafka.descriptor import Kafka, KafkaLog
from headgate.connectors.kafka.runs.groups import publish_positions


@dataclass(frozen=True, slots=True)
class TopicPosition:
    """The position in one topic.

    Attributes:
        id: Kafka's id of the topic; a recreated topic has another id.
        next: The next offset, by partition.
    """

    id: str
    next: tuple[int, ...]


def parse_position(text: str) -> dict[str, TopicPosition]:
    """Return a position's topics by name.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    return parse_topics(text, _topic, on="Kafka")


def offsets(position: str) -> dict[tuple[str, int], int]:
    """Return the next offset by topic and partition."""
    return {
        (name, partition): following
        for name, topic in parse_position(position).items()
        for partition, following in enumerate(topic.next)
    }


def count_between(_topic: Kafka, start: str | None, end: str | None) -> RecordCount | None:
    """Return the number of offsets between two positions, an upper bound of the records.

    Offsets have gaps where transactions ended or compaction removed records. A topic that was
    recreated in between counts from its start.

    Args:
        start: None for offset 0 of each topic.
    """
    if end is None:
        return None
    before = {} if start is None else parse_position(start)
    topics = parse_position(end).items()
    return RecordCount(sum(_between(before.get(name), topic) for name, topic in topics))


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another in every partition.

    A recreated or deleted topic holds none of the wanted records. An unknown target counts as
    reached.
    """
    if target is None:
        return True
    at = parse_position(position)
    return all(
        _has_reached(at.get(name), wanted) for name, wanted in parse_position(target).items()
    )


def find_mismatch(topic: Kafka, position: str, job: str) -> str | None:
    """Return why a position does not hold in a topic: the ids of topics tell clusters apart."""
    # Embedded topics do not need Kafka's client library.
    from headgate.connectors.kafka.access.admin import Cluster

    topics = parse_position(position)
    unread = find_unread(lambda name: has_name(topic, name), topics)
    read = {name: at.id for name, at in topics.items() if has_name(topic, name)}
    if unread is not None or not read:
        return unread
    ids = Cluster(topic.log, doing=f"compare the positions of job {job!r}").ids(read)
    if any(ids.get(name) == id_ for name, id_ in read.items()):
        return None
    first = min(read)
    what = "has another id" if first in ids else "does not exist"
    return f"topic {first!r} {what} at {topic.log.servers}"


@dataclass(frozen=True, slots=True)
class GroupMark:
    """A consumer group on Kafka."""

    log: KafkaLog
    group: str

    def move(self, position: str) -> None:
        publish_positions(self.log, self.group, offsets(position))


def find_mark(topic: Kafka, job: str) -> GroupMark:
    """Return the consumer group named after a job."""
    return GroupMark(topic.log, job)


def describe_mark(topic: Kafka, job: str) -> str:
    """Return the consumer group named after a job, as text."""
    return f"consumer group {job!r} on {topic.log.address}"


def _topic(content: Mapping[str, Any]) -> TopicPosition:
    return TopicPosition(str(content["id"]), tuple(int(offset) for offset in content["next"]))


def _between(start: TopicPosition | None, end: TopicPosition) -> int:
    if start is None or start.id != end.id:
        return sum(end.next)
    before = (*start.next, *(0 for _ in end.next[len(start.next) :]))
    return sum(max(0, last - first) for first, last in zip(before, end.next, strict=False))


def _has_reached(at: TopicPosition | None, wanted: TopicPosition) -> bool:
    if at is None:
        return not any(wanted.next)
    if at.id != wanted.id:
        return True
    reached = (*at.next, *(0 for _ in wanted.next[len(at.next) :]))
    return all(have >= want for have, want in zip(reached, wanted.next, strict=False))
