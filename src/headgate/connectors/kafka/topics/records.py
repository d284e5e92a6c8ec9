"""The records of a topic: in bulk between two offsets per partition, the last ones, new ones.

Offsets have gaps where transactions ended or compaction removed records. So a partition is at its
end when a record at or after the last offset arrives, or the broker reports the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headgate.connectors.contract.places import merge
from headgate.connectors.kafka.access.admin import Cluster, TopicFacts
from headgate.connectors.kafka.access.clients import Troubles, open_consumer
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.failures import FAILURES
from headgate.errors import Domain, HeadgateError

PATIENCE_S = 30.0

_STEP_BACK = 8
# A call waits for this many records or this long, whichever comes first.
_AT_ONCE = 2_000
_LOOK_S = 0.05
_FOLLOW_S = 0.1
# Fetches are large enough that the network does not limit the rate.
_TUNING = {
    "enable.partition.eof": "true",
    "fetch.min.bytes": "1",
    "fetch.wait.max.ms": "100",
    "queued.min.messages": "200000",
    "queued.max.messages.kbytes": "131072",
    "check.crcs": "false",
    "fetch.queue.backoff.ms": "10",
    "max.partition.fetch.bytes": "8388608",
}


class Record(NamedTuple):
    """One record.

    Attributes:
        timestamp: In epoch milliseconds; -1 if it has none.
        value: None is a tombstone.
        headers: Names and values in their original order.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @classmethod
    def of(cls, message: Message, *, headers: bool = True) -> Record:
        """Return a message of the client as a record."""
        return cls(
            message.partition() or 0,
            message.offset() or 0,
            message.timestamp()[1],
            message.key(),
            message.value(),
            _headers(message) if headers else (),
        )


def read_records(
    log: KafkaLog,
    topic: str,
    start: Mapping[int, int],
    end: Mapping[int, int],
    *,
    headers: bool = True,
    patience_s: float = PATIENCE_S,
) -> Iterator[Record]:
    """Yield the committed records of some partitions; in order within each partition.

    Args:
        start: The first offset by partition; only these partitions are read.
        end: The end offset by partition; later records are skipped.
        headers: False leaves headers empty, which is faster.
        patience_s: How long to wait for missing records.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED; DATA_LOST if the first
            offset was deleted.
    """
    bounds = {(topic, part): (first, end[part]) for part, first in start.items()}
    for message in _read_all(log, bounds, f"read topic {topic!r}", patience_s):
        yield Record.of(message, headers=headers)


def tail(log: KafkaLog, topic: str, count: int) -> list[Record]:
    """Return the last records over all partitions, by timestamp; within a partition by offset.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND; what `Cluster` raises.
    """
    return _tail(log, topic, count)[0]


def follow(log: KafkaLog, topic: str, *, last: int = 0) -> Iterator[Record]:
    """Yield the last records, then every new record as it is committed, without end.

    This call decides what counts as new, not the first step of the iterator.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND; what `Cluster` raises.
    """
    existing, ends = _tail(log, topic, last)
    return _follow(log, topic, existing, ends)


def count_records(log: KafkaLog, topics: Sequence[TopicFacts]) -> dict[str, int]:
    """Return the number of committed records of each topic; one client reads them all."""
    partitions = [(topic.name, part.number) for topic in topics for part in topic.parts]
    end = Cluster(log, doing="count records").next_offsets(partitions)
    bounds = {
        (topic.name, part.number): (part.first, end[topic.name, part.number])
        for topic in topics
        for part in topic.parts
    }
    read = Counter(message.topic() for message in _read_all(log, bounds, "count records"))
    return {topic.name: read[topic.name] for topic in topics}


def _tail(log: KafkaLog, topic: str, count: int) -> tuple[list[Record], dict[int, int]]:
    first, end = Cluster(log, doing=f"read topic {topic!r}").bounds(topic)
    span = count
    while True:
        start = {part: max(first[part], end[part] - span) for part in end}
        by_part: dict[int, list[Record]] = {part: [] for part in end}
        for record in read_records(log, topic, start, end) if count else ():
            by_part[record.partition].append(record)
        # Offsets have gaps, so a range may hold fewer records.
        if all(len(by_part[part]) >= count or start[part] == first[part] for part in end):
            merged = list(merge(by_part.values(), time=lambda record: record.timestamp))
            return merged[max(0, len(merged) - count) :], end
        span *= _STEP_BACK


def _follow(
    log: KafkaLog, topic: str, existing: list[Record], ends: Mapping[int, int]
) -> Iterator[Record]:
    yield from existing
    consumer, troubles = open_consumer(log, {"fetch.wait.max.ms": "100"})
    try:
        consumer.assign([TopicPartition(topic, part, end) for part, end in ends.items()])
        while True:
            for message in consumer.consume(1000, _FOLLOW_S):
                error = message.error()
                if error is None:
                    yield Record.of(message)
                elif error.code() != KafkaError._ALL_BROKERS_DOWN:
                    raise troubles.explain(f"follow topic {topic!r}", error)
    finally:
        consumer.close()


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    # A reading client returns a list of bytes; the annotation covers writing too.
    headers: Any = message.headers()
    return tuple(headers) if headers else ()


class _Reading(NamedTuple):
    """Partitions that are being read, and the offset at which each ends."""

    consumer: Consumer
    troubles: Troubles
    doing: str
    left: dict[tuple[str, int], int]
    patience_s: float


def _read_all(
    log: KafkaLog,
    bounds: Mapping[tuple[str, int], tuple[int, int]],
    doing: str,
    patience_s: float = PATIENCE_S,
) -> Iterator[Message]:
    """Yield the committed messages of partitions of any topics, between two offsets of each.

    Args:
        doing: What is being done, for errors.
    """
    left = {place: end for place, (first, end) in bounds.items() if first < end}
    if not left:
        return
    consumer, troubles = open_consumer(log, _TUNING)
    try:
        consumer.assign([TopicPartition(*place, bounds[place][0]) for place in left])
        yield from _read(_Reading(consumer, troubles, doing, left, patience_s))
    finally:
        consumer.close()


def _read(reading: _Reading) -> Iterator[Message]:
    left = reading.left
    heard = time.monotonic()
    while left:
        messages = reading.consumer.consume(_AT_ONCE, _LOOK_S)
        now = time.monotonic()
        if messages:
            heard = now
        elif now - heard > reading.patience_s:
            raise _stuck(reading)
        for message in messages:
            place = (message.topic() or "", message.partition() or 0)
            offset = message.offset()
            if place not in left or offset is None:
                continue
            error = message.error()
            if error is not None:
                _check(reading, place[0], error)
                # The end of the committed records; the wanted ones are before it.
                if offset >= left[place]:
                    _finish(reading, place)
                continue
            if offset < left[place]:
                yield message
            if offset + 1 >= left[place]:
                _finish(reading, place)


def _finish(reading: _Reading, place: tuple[str, int]) -> None:
    del reading.left[place]
    reading.consumer.pause([TopicPartition(*place)])


def _check(reading: _Reading, topic: str, error: KafkaError) -> None:
    code = error.code()
    if code == KafkaError._PARTITION_EOF:
        return
    if code in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
        raise HeadgateError(
            "DATA_LOST",
            f"cannot {reading.doing}: the first of the requested records have been deleted",
            hint=f"headgate topics show {topic} --on kafka://{reading.troubles.servers}",
            domain=Domain.EXTERNAL,
        )
    raise reading.troubles.explain(reading.doing, KafkaException(error))


def _stuck(reading: _Reading) -> HeadgateError:
    doing = reading.doing
    parts = ", ".join(f"{topic}-{part}" for topic, part in sorted(reading.left)[:10])
    problem = f"no record from partitions {parts} for {reading.patience_s:g}s"
    if reading.troubles.errors:
        return reading.troubles.explain(doing, reading.troubles.errors[-1])
    return FAILURES.unreachable(doing, reading.troubles.servers, problem)
