"""The rows of one source's records, counted by position. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headgate._units import format_count
from headgate.connectors.audit import Input, InputRecord, TopicRange
from headgate.jobs.audit.counts.offsets import PartitionCounts
from headgate.jobs.audit.report import Example, Kind, PartitionAudit, SourceAudit
from headgate.jobs.audit.shape import Shape

# Offsets are collected in lists, and counted when there are so many.
_AT_ONCE = 50_000
_EXAMPLES = 5
_NOWHERE = TopicRange("", {}, {}, {})


class SourceCounts:
    """Counts the rows of one source's records.

    Args:
        shape: What the flow says of them.
        read: A range of one topic; None where nothing was read yet.
    """

    def __init__(self, shape: Shape, read: Input | None) -> None:
        self._shape = shape
        self._input = read
        self._range = _NOWHERE if read is None else read.ranges[0]
        self._counts = {
            number: PartitionCounts(self._range.starts[number], end)
            for number, end in self._range.ends.items()
        }
        self._taken: dict[tuple[int, str | None], list[int]] = {}
        self._ahead = 0

    def expect(self, records: Iterable[InputRecord]) -> None:
        """Take the records of the input."""
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
        """Take a row by the place of its record.

        Args:
            group: As the shape has it.
            is_earlier: Of a run before the audited one: it counts within the range alone.
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
        """Return what was found."""
        for place in self._taken:
            self._count(place)
        return SourceAudit(
            topic=self._range.topic or self._shape.source,
            partitions={str(number): self._partition(number) for number in self._counts},
            unjudged=(*self._shape.unseen, *self._shape.copied),
            gaps="" if self._input is None else self._input.gaps,
            ahead=self._ahead,
        )

    def examples(self) -> Iterator[Example]:
        """Yield the first of each kind."""
        kinds = {
            Kind.LOST: PartitionCounts.find_lost,
            Kind.DOUBLED: PartitionCounts.find_doubled,
            Kind.UNKNOWN: PartitionCounts.find_unknown,
        }
        for kind, find in kinds.items():
            if kind is Kind.LOST and not self._shape.is_one_to_one:
                continue
            found = [
                f"{self._range.topic}/{number}/{offset}"
                for number, counts in self._counts.items()
                for offset in find(counts, _EXAMPLES)
            ]
            yield from (Example(kind, self._shape.source, place) for place in found[:_EXAMPLES])

    def notes(self) -> Iterator[str]:
        """Yield what has to be known besides."""
        yield from () if self._input is None else self._input.notes
        before = sum(each.count().before for each in self._counts.values())
        if before:
            yield f"{format_count(before)} rows are of records before the range that was audited"
        if self._input is not None and self._input.gaps:
            unknown = sum(each.count().unknown for each in self._counts.values())
            if unknown:
                yield f"rows may have no record, since {self._input.gaps}"
        if not self._shape.is_one_to_one:
            why = "; ".join((*self._shape.unseen, *self._shape.copied))
            yield f"what {self._shape.source!r} lost cannot be told by position: {why}"

    def _is_within(self, partition: int, offset: int) -> bool:
        within = self._input is not None and partition in self._counts
        return within and self._range.starts[partition] <= offset < self._range.ends[partition]

    def _count(self, place: tuple[int, str | None]) -> None:
        number, group = place
        self._counts[number].take(self._taken[place], group)
        self._taken[place].clear()

    def _partition(self, number: int) -> PartitionAudit:
        found = self._counts[number].count()
        return PartitionAudit(
            records=found.records,
            written=found.written,
            lost=found.records - found.written if self._shape.is_one_to_one else None,
            doubled=found.doubled,
            ahead=found.ahead,
            unknown=found.unknown,
        )
