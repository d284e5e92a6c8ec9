"""The rows of one source's records, counted by the offset that each row names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from headgate._units import format_count
from headgate.connectors.contract.audit import Input, InputRecord, TopicRange
from headgate.jobs.audit.report import Example, Kind, PartitionAudit, SourceAudit
from headgate.jobs.audit.shape import Shape

# The largest count of a record.
_MOST = np.iinfo(np.uint16).max
# Offsets are collected in lists, and counted in arrays of this size.
_AT_ONCE = 50_000
_EXAMPLES = 5
_NOWHERE = TopicRange("", {}, {}, {})


class PartitionCounts:
    """Counts rows by the offset of their record.

    Args:
        begin: The first offset of the range.
        end: The offset after its last.

    Attributes:
        before: Rows of records before the range.
    """

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        size = max(0, end - begin)
        self._is_there = np.zeros(size, np.bool_)
        self._seen = np.zeros(size, np.bool_)
        self._groups: dict[str, npt.NDArray[np.uint16]] = {}
        self._ahead = 0
        self.before = 0

    def expect(self, offsets: Iterable[int]) -> None:
        """Add records of the input by their offsets, which are in the range."""
        self._is_there[_array(offsets) - self._begin] = True

    def take(self, offsets: Iterable[int], group: str | None) -> None:
        """Add rows of an output by the offsets of their records.

        Args:
            group: The rows among which a record may occur once; None if it may occur often.
        """
        places = _array(offsets) - self._begin
        self.before += int(np.count_nonzero(places < 0))
        self._ahead += int(np.count_nonzero(places >= self._seen.size))
        inside = places[(places >= 0) & (places < self._seen.size)]
        self._seen[inside] = True
        if group is not None:
            counts = self._groups.setdefault(group, np.zeros(self._seen.size, np.uint16))
            present, times = np.unique(inside, return_counts=True)
            counts[present] = np.minimum(counts[present].astype(np.int64) + times, _MOST)

    def count(self) -> PartitionAudit:
        records = int(np.count_nonzero(self._is_there))
        written = int(np.count_nonzero(self._is_there & self._seen))
        return PartitionAudit(
            records=records,
            written=written,
            lost=records - written,
            doubled=sum(int(extra.sum(dtype=np.int64)) for extra in self._extras()),
            ahead=self._ahead,
            unknown=int(np.count_nonzero(self._seen & ~self._is_there)),
        )

    def find_lost(self, limit: int) -> list[int]:
        """Return the first offsets of records without a row."""
        return self._first(self._is_there & ~self._seen, limit)

    def find_doubled(self, limit: int) -> list[int]:
        """Return the first offsets of records with too many rows."""
        offsets = {place for extra in self._extras() for place in self._first(extra > 0, limit)}
        return sorted(offsets)[:limit]

    def find_unknown(self, limit: int) -> list[int]:
        """Return the first offsets that rows name, and at which the input has no record."""
        return self._first(self._seen & ~self._is_there, limit)

    def _extras(self) -> Iterator[npt.NDArray[np.uint16]]:
        for counts in self._groups.values():
            yield np.where((counts > 1) & self._is_there, counts - 1, 0).astype(np.uint16)

    def _first(self, mask: npt.NDArray[np.bool_], limit: int) -> list[int]:
        return [int(place) + self._begin for place in np.flatnonzero(mask)[:limit]]


def _array(offsets: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(offsets, np.int64)


class SourceCounts:
    """Counts the rows of one source's records.

    Args:
        read: The records of at most one topic.
    """

    def __init__(self, shape: Shape, read: Input) -> None:
        self._shape = shape
        self._input = read
        self._range = read.ranges[0] if read.ranges else _NOWHERE
        self._counts = {
            number: PartitionCounts(self._range.starts[number], end)
            for number, end in self._range.ends.items()
        }
        self._taken: dict[tuple[int, str | None], list[int]] = {}
        self._ahead = 0

    def expect(self, records: Iterable[InputRecord]) -> None:
        """Add the records of the input."""
        taken: dict[int, list[int]] = {number: [] for number in self._counts}
        for record in records:
            offsets = taken[record.number]
            offsets.append(record.offset)
            if len(offsets) >= _AT_ONCE:
                self._counts[record.number].expect(offsets)
                offsets.clear()
        for number, offsets in taken.items():
            self._counts[number].expect(offsets)

    def take(
        self, partition: int, offset: int, group: str | None, *, is_earlier: bool = False
    ) -> None:
        """Add a row by the position of its record.

        Args:
            group: As the shape has it.
            is_earlier: Whether an earlier run wrote the row, which counts only within the range.
        """
        if is_earlier and not self._is_within(partition, offset):
            return
        if partition not in self._counts:
            self._ahead += 1
            return
        place = (partition, group)
        offsets = self._taken.setdefault(place, [])
        offsets.append(offset)
        if len(offsets) >= _AT_ONCE:
            self._count(place)

    def result(self) -> SourceAudit:
        for place in self._taken:
            self._count(place)
        counts = {str(number): partition.count() for number, partition in self._counts.items()}
        if not self._shape.is_one_to_one:
            counts = {name: replace(partition, lost=None) for name, partition in counts.items()}
        return SourceAudit(
            topic=self._range.topic or self._shape.source,
            partitions=counts,
            unjudged=(*self._shape.unseen, *self._shape.copied),
            gaps=self._input.gaps,
            ahead=self._ahead,
        )

    def examples(self) -> Iterator[Example]:
        """Yield the first records of each kind of problem."""
        kinds = {
            Kind.LOST: PartitionCounts.find_lost,
            Kind.DOUBLED: PartitionCounts.find_doubled,
            Kind.UNKNOWN: PartitionCounts.find_unknown,
        }
        for kind, find in kinds.items():
            if kind is Kind.LOST and not self._shape.is_one_to_one:
                continue
            places = [
                f"{self._range.topic}/{number}/{offset}"
                for number, counts in self._counts.items()
                for offset in find(counts, _EXAMPLES)
            ]
            yield from (Example(kind, self._shape.source, place) for place in places[:_EXAMPLES])

    def notes(self) -> Iterator[str]:
        """Yield remarks for the report."""
        yield from self._input.notes
        before = sum(partition.before for partition in self._counts.values())
        if before:
            yield f"{format_count(before)} rows are of records before the audited range"
        gaps = self._input.gaps
        if gaps and any(partition.count().unknown for partition in self._counts.values()):
            yield f"rows may have no record, since {gaps}"
        if not self._shape.is_one_to_one:
            why = "; ".join((*self._shape.unseen, *self._shape.copied))
            yield f"losses of {self._shape.source!r} cannot be found by position: {why}"

    def _is_within(self, partition: int, offset: int) -> bool:
        starts, ends = self._range.starts, self._range.ends
        return partition in self._counts and starts[partition] <= offset < ends[partition]

    def _count(self, place: tuple[int, str | None]) -> None:
        number, group = place
        self._counts[number].take(self._taken[place], group)
        self._taken[place].clear()
