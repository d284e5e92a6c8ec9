"""Counts of dead letters by job, topic and reason.

This process remembers the counts of each stretch of a topic, so a page that counts every few
seconds reads only new letters.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headgate.connectors.contract.places import PlacedRecord, Places, Stretch
from headgate.jobs.dead_letters.letter import Kind, find_kind

# The most letters that one call reads.
AT_MOST = 1_000_000
_TOPICS = 32


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of letters in a topic.

    Attributes:
        counts: By kind; of all jobs that write to the topic.
        foreign: The number of other records.
        is_all: Whether all retained letters were counted.
    """

    counts: Counter[Kind] = field(default_factory=Counter)
    foreign: int = 0
    is_all: bool = True


@dataclass(frozen=True, slots=True)
class _Part:
    first: Any
    end: Any
    counts: Counter[Kind]
    foreign: int


class Counting:
    """Counts letters of topics, and remembers. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._topics: OrderedDict[str, dict[str, _Part]] = OrderedDict()

    def count(self, name: str, places: Places, *, at_most: int = AT_MOST) -> Tally:
        """Return the number of letters in a topic; the newest are counted first.

        Args:
            name: Identifies the topic in this process.
            at_most: The maximum number of letters that this call reads.
        """
        with self._lock:
            known = self._topics.pop(name, {})
        parts, is_all = _count(places, known, at_most)
        with self._lock:
            self._topics[name] = parts
            while len(self._topics) > _TOPICS:
                self._topics.popitem(last=False)
        total: Counter[Kind] = Counter()
        for part in parts.values():
            total.update(part.counts)
        return Tally(total, sum(part.foreign for part in parts.values()), is_all)


def _count(places: Places, known: dict[str, _Part], at_most: int) -> tuple[dict[str, _Part], bool]:
    parts: dict[str, _Part] = {}
    is_all, left = True, at_most
    for stretch in reversed(places.stretches(at_most)):
        had = _usable(known.get(stretch.part), stretch)
        first = stretch.first if had is None else had.end
        if left <= 0 and first < stretch.end:
            is_all = False
        else:
            more = Stretch(stretch.part, first, stretch.end, stretch.kept_from)
            counted = _part(more, places.read(more) if first < stretch.end else ())
            left -= counted.counts.total() + counted.foreign
            had = counted if had is None else _joined(had, counted)
        if had is not None:
            parts[stretch.part] = had
            is_all = is_all and had.first <= stretch.kept_from
    return parts, is_all


def _usable(part: _Part | None, stretch: Stretch) -> _Part | None:
    """Return the counts of a part, unless records of it were deleted or too many are new."""
    if part is None or part.first < stretch.kept_from or part.end > stretch.end:
        return None
    return None if part.end < stretch.first else part


def _part(stretch: Stretch, records: Iterable[PlacedRecord]) -> _Part:
    counts: Counter[Kind] = Counter()
    foreign = 0
    for record in records:
        kind = find_kind(record.value)
        if kind is None:
            foreign += 1
        else:
            counts[kind] += 1
    return _Part(stretch.first, stretch.end, counts, foreign)


def _joined(first: _Part, second: _Part) -> _Part:
    return _Part(
        first.first, second.end, first.counts + second.counts, first.foreign + second.foreign
    )
