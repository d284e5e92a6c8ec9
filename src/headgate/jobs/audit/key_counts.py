"""The keys of one source's records and rows, compared by a hash of 64 bits. Pure."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headgate._units import format_count
from headgate.connectors.contract.audit import Input, InputRecord, Passed, Row, Standing
from headgate.jobs.audit.report import Example, Kind, PartitionAudit, SourceAudit
from headgate.jobs.dead_letters.letter import DeadLetter

Hashes = npt.NDArray[np.int64]
Place = tuple[str, int, int]

EXAMPLES = 5
_JSON = json.JSONDecoder()
_NONE = PartitionAudit(records=0, written=0, lost=0, doubled=0)


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """The columns that identify records: paths into their JSON."""

    paths: tuple[tuple[str, ...], ...]

    def find(self, value: bytes | None) -> tuple[str, ...] | None:
        """Return a record's key, as texts that are equal for equal keys.

        None if the record is not a JSON object, or a column is missing or null.
        """
        try:
            row = _JSON.decode(str(value or b"", "utf-8"))
        except (ValueError, RecursionError):
            return None
        key = []
        for path in self.paths:
            at = row
            for part in path:
                at = at.get(part) if type(at) is dict else None
            if at is None:
                return None
            key.append(str(at) if type(at) is int else _text(at))
        return tuple(key)


def hash_of(key: tuple[str, ...]) -> int:
    """Return a key's hash, which is valid in this process only."""
    return hash(key)


def _text(value: Any) -> str:
    # 5 and 5.0 are the same key.
    if type(value) is float and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True, slots=True)
class KeyFindings:
    """The result of a comparison of keys.

    Attributes:
        partitions: By number. Of the records of one key, the last ones are the lost ones, and
            surplus rows count for the partition of the first.
        unknown: Rows whose key is not in the input.
        ahead: Rows of earlier runs whose key is not in the input: their position is unknown.
        lost_keys: Hashes of some lost keys; likewise the others.
    """

    partitions: dict[int, PartitionAudit]
    unknown: int
    ahead: int
    lost_keys: frozenset[int]
    doubled_keys: frozenset[int]
    unknown_keys: frozenset[int]


class KeyCounts:
    """Collects the keys of records and of rows: 8 bytes each, and 4 more for a record."""

    def __init__(self) -> None:
        self._records = array("q")
        self._partitions = array("i")
        self._rows = array("q")
        self._earlier = array("q")
        self._shared = array("q")

    def expect(self, key: int, partition: int) -> None:
        """Add a record of the input by its key's hash."""
        self._records.append(key)
        self._partitions.append(partition)

    def take(self, key: int, *, is_earlier: bool = False, is_shared: bool = False) -> None:
        """Add a row of an output by its key's hash.

        Args:
            is_earlier: Whether an earlier run wrote it, which may have read further.
            is_shared: Whether it may be of another source, and so of a key that is not in the
                input.
        """
        rows = self._shared if is_shared else self._earlier if is_earlier else self._rows
        rows.append(key)

    def compare(self, *, examples: int) -> KeyFindings:
        """Compare the records with the rows.

        Args:
            examples: The maximum number of keys that are named for each kind of problem.
        """
        records = np.frombuffer(self._records, np.int64)
        order = np.argsort(records, kind="stable")
        partitions = np.frombuffer(self._partitions, np.int32)[order]
        keys, first, wanted = np.unique(records[order], return_index=True, return_counts=True)
        written, times = np.unique(np.frombuffer(self._rows, np.int64), return_counts=True)
        earlier, times_earlier = np.unique(
            np.frombuffer(self._earlier, np.int64), return_counts=True
        )
        shared, times_shared = np.unique(np.frombuffer(self._shared, np.int64), return_counts=True)
        rows = _look_up(keys, written, times) + _look_up(keys, earlier, times_earlier)
        rows = rows + _look_up(keys, shared, times_shared)
        doubled = np.maximum(rows - wanted, 0)
        # The n-th record of a key is lost if fewer than n rows have the key.
        rank = np.arange(records.size) - np.repeat(first, wanted)
        is_lost = rank >= np.repeat(rows, wanted)
        is_unknown = _look_up(written, keys, wanted) == 0
        counts = {}
        for number in np.unique(partitions):
            is_here = partitions == number
            here, lost = np.count_nonzero(is_here), np.count_nonzero(is_lost & is_here)
            counts[int(number)] = PartitionAudit(
                records=int(here),
                written=int(here - lost),
                lost=int(lost),
                doubled=int(doubled[is_here[first]].sum()),
            )
        return KeyFindings(
            counts,
            int(times[is_unknown].sum()),
            int(times_earlier[_look_up(earlier, keys, wanted) == 0].sum()),
            _some(keys[rows < wanted], examples),
            _some(keys[rows > wanted], examples),
            _some(written[is_unknown], examples),
        )


def _look_up(keys: Hashes, known: Hashes, counts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the count of each key, 0 for an unknown one; `known` is sorted."""
    if not known.size:
        return np.zeros(keys.size, np.intp)
    places = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return np.where(known[places] == keys, counts[places], 0)


def _some(keys: Hashes, limit: int) -> frozenset[int]:
    return frozenset(int(key) for key in keys[:limit])


class KeyTally:
    """Compares the keys of one source's records and rows.

    Rows are added before records: a record that could not be decoded has no key, and is identified
    by the position that its dead letter names.

    Args:
        unjudged: Reasons why losses cannot be found; empty if they can.
    """

    def __init__(
        self, columns: KeyColumns, source: str, read: Input, unjudged: tuple[str, ...] = ()
    ) -> None:
        self._columns = columns
        self._unjudged = unjudged
        self.source = source
        self._input = read
        self._counts = KeyCounts()
        self._letters: Counter[Place] = Counter()
        self._refused: Counter[int] = Counter()
        self._refused_twice: Counter[int] = Counter()
        self._twice: list[Place] = []
        self._ahead = 0
        self._before = 0
        self._keyless = 0
        self._others: dict[str, None] = {}

    def take(self, row: Row, passed: Passed, *, others: Sequence[str] = ()) -> None:
        """Add a row of an output.

        Args:
            others: The other sources whose rows are in that output.
        """
        if self._counts_in(row.source, row.partition, row.offset, row):
            is_shared = bool(others) and row.source is None
            if is_shared:
                self._others.update(dict.fromkeys(others))
            self._take_key(row.value, row, passed, is_shared=is_shared)

    def take_letter(self, source: str | None, letter: DeadLetter, row: Row, passed: Passed) -> None:
        """Add a dead letter of a source."""
        if source is None or not self._counts_in(source, letter.partition, letter.offset, row):
            return
        if letter.source == self.source:
            self._letters[letter.topic, letter.partition, letter.offset] += 1
        else:
            self._take_key(None if letter.cut else letter.raw, row, passed)

    def expect(self, records: Iterable[InputRecord]) -> None:
        """Add the records of the input, after all rows."""
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
        findings = self._counts.compare(examples=EXAMPLES)
        return replace(findings, lost_keys=frozenset()) if self._unjudged else findings

    def result(self, findings: KeyFindings) -> SourceAudit:
        return SourceAudit(
            topic=self._input.topic,
            partitions={
                name: self._partition(place, findings.partitions.get(place, _NONE))
                for place, name in enumerate(self._input.partitions)
            },
            unjudged=self._unjudged,
            gaps=self._input.gaps,
            keyless=self._keyless,
            ahead=self._ahead + findings.ahead,
            unknown=findings.unknown + self._letters.total(),
        )

    def letter_examples(self) -> Iterator[Example]:
        """Yield some records with too many dead letters."""
        for kind, places in ((Kind.DOUBLED, self._twice), (Kind.UNKNOWN, list(self._letters))):
            for topic, number, offset in places[:EXAMPLES]:
                yield Example(kind, self.source, f"{topic}/{number}/{offset}")

    def notes(self) -> Iterator[str]:
        """Yield remarks for the report."""
        yield from self._input.notes
        if self._before:
            yield f"{format_count(self._before)} rows are of records before the audited range"
        if self._input.gaps:
            yield f"rows may have no record, since {self._input.gaps}"
        if self._others:
            names = ", ".join(map(repr, self._others))
            yield (
                f"rows of {names} are in the same outputs, which do not name the source of a row: "
                f"a key that is also in a record of theirs counts as one of {self.source!r}"
            )
        if self._unjudged:
            why = "; ".join(self._unjudged)
            yield f"losses of {self.source!r} cannot be found by key: {why}"

    def _counts_in(self, source: str | None, partition: int, offset: int, row: Row) -> bool:
        """Tell whether a row is of the source and of the range."""
        if source is not None and source != self.source:
            return False
        standing = Standing.WITHIN if source is None else self._input.standing(partition, offset)
        if row.is_earlier:
            return standing is Standing.WITHIN
        if row.is_ahead or standing is Standing.AHEAD:
            self._ahead += 1
            return False
        self._before += standing is Standing.BEFORE
        return standing is Standing.WITHIN

    def _take_key(
        self, value: bytes | None, row: Row, passed: Passed, *, is_shared: bool = False
    ) -> None:
        key = self._columns.find(value)
        if key is not None:
            self._counts.take(hash_of(key), is_earlier=row.is_earlier, is_shared=is_shared)
        elif not row.is_earlier:
            passed.keyless += 1

    def _partition(self, place: int, count: PartitionAudit) -> PartitionAudit:
        """Return the count of a partition with the records that are dead letters."""
        return PartitionAudit(
            records=count.records + self._refused[place],
            written=count.written + self._refused[place],
            lost=None if self._unjudged else count.lost,
            doubled=count.doubled + self._refused_twice[place],
        )
