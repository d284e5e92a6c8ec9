"""The records of a topic for people: the last ones, new ones, and their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, TopicPartition

from headgate.connectors.kafka.admin import Cluster
from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.clients import open_consumer
from headgate.connectors.kafka.reading import Record, read_records
from headgate.connectors.merging import merge

_STEP_BACK = 8
_LOOK_S = 0.1


def tail(client: ClientSpec, topic: str, count: int) -> list[Record]:
    """Return the last records over all partitions, by timestamp; within a partition by offset.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND; what `Cluster` raises.
    """
    return _tail(client, topic, count)[0]


def follow(client: ClientSpec, topic: str, *, last: int = 0) -> Iterator[Record]:
    """Yield the last records, then every new record as it is committed, without end.

    This call decides what counts as new, not the first step of the iterator.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND; what `Cluster` raises.
    """
    existing, ends = _tail(client, topic, last)
    return _follow(client, topic, existing, ends)


def count_records(client: ClientSpec, topic: str) -> int:
    """Return the number of committed records of a topic; reads them all."""
    first, end = _bounds(client, topic)
    return sum(1 for _ in read_records(client, topic, first, end, headers=False))


def _tail(client: ClientSpec, topic: str, count: int) -> tuple[list[Record], dict[int, int]]:
    first, end = _bounds(client, topic)
    span = count
    while True:
        start = {part: max(first[part], end[part] - span) for part in end}
        by_part: dict[int, list[Record]] = {part: [] for part in end}
        for record in read_records(client, topic, start, end) if count else ():
            by_part[record.partition].append(record)
        # Offsets have gaps, so a range may hold fewer records.
        if all(len(by_part[part]) >= count or start[part] == first[part] for part in end):
            merged = list(merge(by_part.values(), time=lambda record: record.timestamp))
            return merged[max(0, len(merged) - count) :], end
        span *= _STEP_BACK


def _follow(
    client: ClientSpec, topic: str, existing: list[Record], ends: Mapping[int, int]
) -> Iterator[Record]:
    yield from existing
    consumer, troubles = open_consumer(client, {"fetch.wait.max.ms": "100"})
    try:
        consumer.assign([TopicPartition(topic, part, end) for part, end in ends.items()])
        while True:
            for message in consumer.consume(1000, _LOOK_S):
                error = message.error()
                if error is None:
                    yield Record.of(message)
                elif error.code() != KafkaError._ALL_BROKERS_DOWN:
                    raise troubles.explain(f"follow topic {topic!r}", error)
    finally:
        consumer.close()


def _bounds(client: ClientSpec, topic: str) -> tuple[dict[int, int], dict[int, int]]:
    cluster = Cluster(client, doing=f"read topic {topic!r}")
    partitions = cluster.partitions(topic)
    first, end = cluster.first_offsets(partitions), cluster.next_offsets(partitions)
    return _by_number(first), _by_number(end)


def _by_number(offsets: Mapping[tuple[str, int], int]) -> dict[int, int]:
    return {number: offset for (_, number), offset in offsets.items()}
