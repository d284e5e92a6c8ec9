"""The records of several partitions in one sequence."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

R = TypeVar("R")


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
