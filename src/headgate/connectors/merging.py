"""The records of several partitions as one row."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

R = TypeVar("R")


def merge(partitions: Iterable[Iterable[R]], *, time: Callable[[R], int]) -> Iterator[R]:
    """Yield the records of partitions by time, and keep the order within each.

    Of the same time, those of the partition that is named first come first.
    """

    def with_times(number: int, records: Iterable[R]) -> Iterator[tuple[int, int, int, R]]:
        latest = -1
        for place, record in enumerate(records):
            # A record that was written late does not go before the one it follows.
            latest = max(latest, time(record))
            yield latest, number, place, record

    for *_, record in heapq.merge(*(with_times(*each) for each in enumerate(partitions))):
        yield record
