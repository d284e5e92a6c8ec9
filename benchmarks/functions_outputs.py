"""What comes out of the flows with Python functions, beside what plain Python computes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer, TopicPartition
from kafka_outputs import KafkaReader, read_pieces, read_records

Ints = npt.NDArray[np.int64]
_SHIFT = 32
_VISIT = re.compile(rb'"visit_id":"(\d+)')


@dataclass(frozen=True, slots=True)
class Expected:
    """What one run must write.

    Attributes:
        seconds: The second of each visit, sorted.
        totals: The totals of all visits, each with its visit in the upper half, sorted.
    """

    seconds: Ints
    totals: Ints

    @property
    def events(self) -> int:
        """The number of events."""
        return int(self.seconds.size)

    def check_seconds(self, name: str, found: Ints) -> None:
        """Raise RuntimeError unless all copies are there, each once, and nothing else."""
        _check(name, found, self.seconds)

    def check_totals(self, name: str, found: Ints) -> None:
        """Raise RuntimeError unless all totals are there, each once, and nothing else."""
        _check(name, found, self.totals)


def expect(servers: str, topic: str) -> Expected:
    """Return what must become of the visits in a topic."""
    since = KafkaReader(servers).beginning(topic)
    times, visits = _columns(servers, since, b'"event_time":', b'"visit_id":"')
    visits.sort()
    # The events of a visit are numbered from 1.
    places = np.arange(visits.size)
    is_first = np.r_[True, visits[1:] != visits[:-1]]
    firsts = np.maximum.accumulate(np.where(is_first, places, 0))
    return Expected(np.sort(times // 1000), visits << _SHIFT | places - firsts + 1)


def find_seconds(servers: str, since: list[TopicPartition]) -> Ints:
    """Return the seconds in a topic from a place on, sorted."""
    (seconds,) = _columns(servers, since, b'"second":')
    return np.sort(seconds)


def find_totals(servers: str, since: list[TopicPartition]) -> Ints:
    """Return the totals in a topic from a place on, each with its visit, sorted."""
    visits, totals = _columns(servers, since, b'"visit_id":"', b'"total":')
    return np.sort(visits << _SHIFT | totals)


def copy_visits(servers: str, source: str, target: str, *, count: int, partitions: int) -> None:
    """Copy so many visits to another topic, those of a visit to one partition."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    records = read_records(servers, KafkaReader(servers).beginning(source))
    for left, (_, value) in zip(range(count), records, strict=False):
        found = _VISIT.search(value)
        assert found is not None
        visit = int(found[1])
        producer.produce(target, value, str(visit), partition=visit % partitions)
        if left % 10_000 == 0:
            producer.flush()
    producer.flush()


def _columns(servers: str, since: list[TopicPartition], *names: bytes) -> list[Ints]:
    """Return numbers in the records of a topic: an array for each name, in the records' order."""
    columns: list[list[Ints]] = [[np.empty(0, np.int64)] for _ in names]
    for piece in read_pieces(servers, since):
        values = [message.value() or b"" for message in piece]
        for column, name in zip(columns, names, strict=True):
            column.append(_numbers(values, name))
    return [np.concatenate(column) for column in columns]


def _numbers(values: Sequence[bytes], name: bytes) -> Ints:
    """Return the first number behind a name in each record, which is a line."""
    found = re.findall(rb"(?m)^.*?" + re.escape(name) + rb"(\d+)", b"\n".join(values))
    if len(found) != len(values):
        raise RuntimeError(f"{len(values) - len(found)} records have no {name.decode()}")
    return np.array(found, dtype="S20").astype(np.int64)


def _check(name: str, found: Ints, expected: Ints) -> None:
    if not np.array_equal(found, expected):
        raise RuntimeError(
            f"{name} wrote {found.size:,} rows, which are not the {expected.size:,} wanted"
        )
