"""What came out of counting visits in windows, compared with a count in numpy."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
from confluent_kafka import TopicPartition
from kafka_outputs import find_ends, read_records

WINDOW_MS = 15 * 60 * 1000
OUT_OF_ORDER_MS = 5 * 60 * 1000

_VISIT = re.compile(rb'"visit_id":"(\d+)","event_time":(\d+),')
_OURS = re.compile(
    rb'\{"visit_id":"(\d+)","window_start":"([^"]+)".*"visits":(\d+),"partial":(true|false)'
)
_SPARKS = re.compile(rb'\{"visit_id":"(\d+)","start":"([^"]+)".*"visits":(\d+)\}')
# A group is a visit and a window in one number; there are fewer windows than this.
_WINDOWS = 1 << 32

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many events each visit has in each window.

    Attributes:
        groups: A visit and a window in one number each, sorted.
        events: By group.
        latest: The greatest event time, in epoch milliseconds.
    """

    groups: Ints
    events: Ints
    latest: int

    def closed(self) -> Counts:
        """Return what is in windows that the watermark has passed at the end."""
        ends = (self.groups % _WINDOWS + 1) * WINDOW_MS
        over = ends <= self.latest - OUT_OF_ORDER_MS
        return Counts(self.groups[over], self.events[over], self.latest)


def count_visits(servers: str) -> Counts:
    """Count the events in the topic visits."""
    groups, latest = array("q"), 0
    for _, value in read_records(servers, _all_of(servers, "visits")):
        found = _VISIT.search(value)
        if found is None:
            raise RuntimeError(f"this is no visit: {value!r}")
        at = int(found[2])
        latest = max(latest, at)
        groups.append(int(found[1]) * _WINDOWS + at // WINDOW_MS)
    known, events = np.unique(np.frombuffer(groups, dtype=np.int64), return_counts=True)
    return Counts(known, events.astype(np.int64), latest)


def check_ours(servers: str, topic: str, wanted: Counts) -> int:
    """Return how many rows a topic of ours has, or refuse: each window's count is there once.

    Raises:
        RuntimeError: A window that is over has no final row, a wrong one, or two; or an early
            result tells of more events than there were.
    """
    finals, early = _Told(), _Told()
    for _, value in read_records(servers, _all_of(servers, topic)):
        found = _match(_OURS, value)
        (early if found[4] == b"true" else finals).add(found)
    groups, counts = finals.arrays()
    closed = wanted.closed()
    order = np.argsort(groups)
    if not np.array_equal(groups[order], closed.groups):
        raise RuntimeError(
            f"{topic} has {len(groups):,} final rows of {len(np.unique(groups)):,} windows, and "
            f"{len(closed.groups):,} are over"
        )
    _compare(topic, "final count", counts[order], closed.events)
    groups, counts = early.arrays()
    most = wanted.events[np.searchsorted(wanted.groups, groups)]
    if np.any(counts > most):
        raise RuntimeError(f"{topic} tells early of more events than there were")
    return len(groups) + len(order)


def check_sparks(servers: str, topic: str, wanted: Counts) -> int:
    """Return how many rows Spark's topic has, or refuse: the last row of each group is its count.

    Raises:
        RuntimeError: A group is missing or foreign, or its last count is wrong.
    """
    told = _Told()
    for _, value in read_records(servers, _all_of(servers, topic)):
        told.add(_match(_SPARKS, value))
    groups, counts = told.arrays()
    known, places = np.unique(groups, return_inverse=True)
    if not np.array_equal(known, wanted.groups):
        raise RuntimeError(f"{topic} has {len(known):,} groups, and not {len(wanted.groups):,}")
    last: Ints = np.zeros(len(known), np.int64)
    # Counts only grow, so that the greatest is the last.
    np.maximum.at(last, places, counts)
    _compare(topic, "last count", last, wanted.events)
    return len(groups)


class _Told:
    """Rows as numbers."""

    def __init__(self) -> None:
        self._groups = array("q")
        self._counts = array("q")
        self._windows: dict[bytes, int] = {}

    def add(self, found: re.Match[bytes]) -> None:
        window = self._windows.get(found[2])
        if window is None:
            start = datetime.fromisoformat(found[2].decode())
            window = self._windows[found[2]] = round(start.timestamp() * 1000) // WINDOW_MS
        self._groups.append(int(found[1]) * _WINDOWS + window)
        self._counts.append(int(found[3]))

    def arrays(self) -> tuple[Ints, Ints]:
        groups, counts = (np.array(each, dtype=np.int64) for each in (self._groups, self._counts))
        return groups, counts


def _match(pattern: re.Pattern[bytes], value: bytes) -> re.Match[bytes]:
    found = pattern.match(value)
    if found is None:
        raise RuntimeError(f"this is no count: {value!r}")
    return found


def _compare(topic: str, what: str, found: Ints, wanted: Ints) -> None:
    wrong = int(np.count_nonzero(found != wanted))
    if wrong:
        raise RuntimeError(f"{topic}: the {what} of {wrong:,} windows is not what numpy counts")


def _all_of(servers: str, topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, each.partition, 0) for each in find_ends(servers, [topic])]
