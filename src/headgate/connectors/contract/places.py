"""The records of one topic by place: the last ones, single ones, or all retained ones.

Each connector reads and writes its own topics; `PlacedRecord` is their common form.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRecord:
    """A record and its place.

    Attributes:
        place: Identifies it in its topic while it is retained: `PARTITION:OFFSET` on Kafka,
            `PARTITION:LEDGER:ENTRY` on Pulsar (and the index in a batch), `FILE:BYTE` in a folder.
        timestamp: When it was appended, in epoch milliseconds; -1 if unknown.
        value: None for a record without a value.
        headers: Names and values in their original order.
        event_time: The producer's event time in epoch milliseconds; None if it has none.
    """

    place: str
    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    event_time: int | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """The retained records of one partition or file, or the last of them.

    Attributes:
        part: The name of the partition or file.
        first: The first place; later places are greater.
        end: The place after the last record.
        kept_from: The first retained place: before `first` if only the last records were requested.
    """

    part: str
    first: Any
    end: Any
    kept_from: Any


Spot: TypeAlias = tuple[int, int]
"""A record's position in the kernel's terms: partition and offset."""

Send: TypeAlias = Callable[[Sequence[PlacedRecord]], None]
"""Appends records and returns when all are acknowledged; each goes to its partition."""


class Places(Protocol):
    """The records of one topic. Raises the errors of the log's clients."""

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the last records, newest last."""

    def stretches(self, at_most: int | None = None) -> list[Stretch]:
        """Return the retained records, older parts first.

        Args:
            at_most: About this many of the newest records over all parts; None for all.
        """

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:
        """Yield the records of a stretch, oldest first."""

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:
        """Return the records at these places; missing ones are skipped."""

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:
        """Return the records at the kernel's positions, as far as they are retained."""

    def sending(self) -> AbstractContextManager[Send]:
        """Open a publisher for the topic, which must exist."""


def merge(partitions: Iterable[Iterable[R]], *, time: Callable[[R], int]) -> Iterator[R]:
    """Yield the records of partitions by time, in order within each partition.

    At equal times, earlier partitions come first.
    """

    def with_times(number: int, records: Iterable[R]) -> Iterator[tuple[int, int, int, R]]:
        latest = -1
        for place, record in enumerate(records):
            # A record with an older time does not overtake its predecessor.
            latest = max(latest, time(record))
            yield latest, number, place, record

    for *_, record in heapq.merge(*(with_times(*numbered) for numbered in enumerate(partitions))):
        yield record
