"""The keys of one source's records and rows, as they are read. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from headgate._units import format_count
from headgate.connectors.audit import Input, InputRecord, Passed, Row, Standing
from headgate.jobs.audit.counts.keys import KeyColumns, KeyCount, KeyCounts, KeyFindings, hash_of
from headgate.jobs.audit.records.marks import Letter
from headgate.jobs.audit.report import Example, Kind, PartitionAudit, SourceAudit

EXAMPLES = 5

_NONE = KeyCount(0, 0, 0)
Place = tuple[str | None, int, int]


class KeyTally:
    """Compares keys.

    Rows are taken before records: a record that could not be decoded is known by the place that
    its dead letter names, and needs no key.

    Args:
        source: Its id.
        read: Its records.
    """

    def __init__(self, columns: KeyColumns, source: str, read: Input) -> None:
        self._columns = columns
        self._source = source
        self._input = read
        self._counts = KeyCounts()
        self._letters: Counter[Place] = Counter()
        self._refused: Counter[int] = Counter()
        self._refused_twice: Counter[int] = Counter()
        self._twice: list[Place] = []
        self._ahead = 0
        self._before = 0
        self._keyless = 0

    def take(self, row: Row, passed: Passed) -> None:
        """Take a row of an output."""
        if self._counts_in(row.source, row.partition, row.offset, row):
            self._take_key(row.value, row, passed)

    def take_letter(self, source: str | None, letter: Letter, row: Row, passed: Passed) -> None:
        """Take a dead letter of a source."""
        if source is None or not self._counts_in(source, letter.partition, letter.offset, row):
            return
        if letter.origin == self._source:
            self._letters[letter.topic, letter.partition, letter.offset] += 1
        else:
            self._take_key(letter.raw, row, passed)

    def expect(self, records: Iterable[InputRecord]) -> None:
        """Take the records of the input; after all rows."""
        for partition, topic, number, offset, value in records:
            letters = self._letters.pop((topic, number, offset), 0) if self._letters else 0
            if letters:
                self._refused[partition] += 1
                self._refused_twice[partition] += letters - 1
                if letters > 1:
                    self._twice.append((topic, number, offset))
                continue
            key = self._columns.find(value)
            if key is None:
                self._keyless += 1
            else:
                self._counts.expect(hash_of(key), partition)

    def compare(self) -> KeyFindings:
        """Return what was found of the keys."""
        return self._counts.compare(examples=EXAMPLES)

    def result(self, found: KeyFindings) -> SourceAudit:
        """Return what was found of the source."""
        return SourceAudit(
            topic=self._input.topic,
            partitions={
                name: self._partition(place, found.partitions.get(place, _NONE))
                for place, name in enumerate(self._input.partitions)
            },
            gaps=self._input.gaps,
            keyless=self._keyless,
            ahead=self._ahead + found.ahead,
            unknown=found.unknown + self._letters.total(),
        )

    def letter_examples(self) -> Iterator[Example]:
        """Yield some records whose dead letters are too many."""
        for kind, places in ((Kind.DOUBLED, self._twice), (Kind.UNKNOWN, list(self._letters))):
            for topic, number, offset in places[:EXAMPLES]:
                yield Example(kind, self._source, f"{topic}/{number}/{offset}")

    def notes(self) -> Iterator[str]:
        """Yield what has to be known besides."""
        yield from self._input.notes
        if self._before:
            rows = format_count(self._before)
            yield f"{rows} rows are of records before the range that was audited"
        if self._input.gaps:
            yield f"rows may have no record, since {self._input.gaps}"

    def _counts_in(self, source: str | None, partition: int, offset: int, row: Row) -> bool:
        """Tell whether a row is of the source and of the range."""
        if source is not None and source != self._source:
            return False
        standing = Standing.WITHIN if source is None else self._input.standing(partition, offset)
        if row.is_earlier:
            return standing is Standing.WITHIN
        if row.is_ahead or standing is Standing.AHEAD:
            self._ahead += 1
            return False
        self._before += standing is Standing.BEFORE
        return standing is Standing.WITHIN

    def _take_key(self, value: bytes | None, row: Row, passed: Passed) -> None:
        key = self._columns.find(value)
        if key is not None:
            self._counts.take(hash_of(key), is_earlier=row.is_earlier)
        elif not row.is_earlier:
            passed.keyless += 1

    def _partition(self, place: int, found: KeyCount) -> PartitionAudit:
        records = found.records + self._refused[place]
        return PartitionAudit(
            records=records,
            written=records - found.lost,
            lost=found.lost,
            doubled=found.doubled + self._refused_twice[place],
        )
