"""What comes out of the flows with Python functions, beside what plain Python computes."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer
from kafka_outputs import KafkaReader, read_records

Ints = npt.NDArray[np.int64]
_SHIFT = 32


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

    def check_seconds(self, name: str, found: Ints, times: int) -> None:
        """Raise RuntimeError unless copies are there so many times, and nothing else."""
        _check(name, found, self.seconds, times)

    def check_totals(self, name: str, found: Ints, times: int) -> None:
        """Raise RuntimeError unless totals are there so many times, and nothing else."""
        _check(name, found, self.totals, times)


def expect(servers: str, topic: str) -> Expected:
    """Return what must become of the visits in a topic."""
    seconds, totals = array("q"), array("q")
    counts: Counter[int] = Counter()
    for _, value in _records(servers, topic):
        seconds.append(_number(value, b'"event_time":') // 1000)
        visit = _number(value, b'"visit_id":"')
        counts[visit] += 1
        totals.append(visit << _SHIFT | counts[visit])
    return Expected(_sorted(seconds), _sorted(totals))


def find_seconds(servers: str, topic: str) -> Ints:
    """Return the seconds in a topic, sorted."""
    return _sorted(
        array("q", (_number(value, b'"second":') for _, value in _records(servers, topic)))
    )


def find_totals(servers: str, topic: str) -> Ints:
    """Return the totals in a topic, each with its visit, sorted."""
    totals = array("q")
    for _, value in _records(servers, topic):
        totals.append(_number(value, b'"visit_id":"') << _SHIFT | _number(value, b'"total":'))
    return _sorted(totals)


def copy_visits(servers: str, source: str, target: str, *, count: int, partitions: int) -> None:
    """Copy so many visits to another topic, those of a visit to one partition."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for left, (_, value) in zip(range(count), _records(servers, source), strict=False):
        visit = _number(value, b'"visit_id":"')
        producer.produce(target, value, str(visit), partition=visit % partitions)
        if left % 10_000 == 0:
            producer.flush()
    producer.flush()


def _records(servers: str, topic: str) -> Iterator[tuple[str, bytes]]:
    return read_records(servers, KafkaReader(servers).beginning(topic))


def _number(value: bytes, name: bytes) -> int:
    begin = end = value.index(name) + len(name)
    while value[end : end + 1].isdigit():
        end += 1
    return int(value[begin:end])


def _sorted(numbers: array[int]) -> Ints:
    return np.sort(np.frombuffer(numbers, dtype=np.int64))


def _check(name: str, found: Ints, expected: Ints, times: int) -> None:
    if not np.array_equal(found, np.repeat(expected, times)):
        wanted = expected.size * times
        raise RuntimeError(f"{name} wrote {found.size:,} rows, which are not the {wanted:,} wanted")
