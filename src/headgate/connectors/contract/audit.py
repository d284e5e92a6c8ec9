"""The input of an audit on any log: the records of a source's range, and the rows of an output."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

from headgate.errors import HeadgateError

T = TypeVar("T")
_EVERY = 8_192
# The header (Kafka) or property (Pulsar) of a row that came from one record: lineage, source,
# partition and offset, separated by slashes.
_HEADER = "headgate"


@dataclass(frozen=True, slots=True)
class AuditProgress:
    """The records of a topic read so far, and their maximum number if known."""

    topic: str
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Meter:
    """Reports the progress of a read."""

    tell: Callable[[AuditProgress], None] = lambda _: None

    def over(self, records: Iterable[T], topic: str, total: int | None) -> Iterator[T]:
        """Yield the records and report progress."""
        done = 0
        self.tell(AuditProgress(topic, 0, total))
        for done, record in enumerate(records, start=1):
            yield record
            if done % _EVERY == 0:
                self.tell(AuditProgress(topic, done, total))
        # Offsets have gaps, so there may be fewer records than the estimate.
        self.tell(AuditProgress(topic, done, done))


class Standing(enum.Enum):
    """The location of a record relative to the audited range."""

    BEFORE = "before"
    WITHIN = "within"
    AHEAD = "ahead"


class InputRecord(NamedTuple):
    """One record of the range.

    Attributes:
        partition: The index of its partition in the input's list.
        number: The partition number as rows of this record state it.
        offset: The offset as rows of this record state it.
    """

    partition: int
    topic: str
    number: int
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TopicRange:
    """The range that was read from one topic, as far as its records are still retained.

    Attributes:
        starts: The first offset, by partition.
        ends: The offset after the last record read, by partition.
        kept: The offset after the last retained record, at most `ends`.
    """

    topic: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    kept: Mapping[int, int]

    @property
    def total(self) -> int:
        """The maximum number of records."""
        return sum(self.kept[number] - start for number, start in self.starts.items())


@dataclass(frozen=True, slots=True)
class Input:
    """The records that a run read from one source; by default it has read nothing.

    Attributes:
        topic: The topic, or the pattern for several topics.
        read: Yields every record of the range.
        standing: Returns the location of a partition and an offset that a row names.
        partitions: The names of the partitions in the report.
        ranges: The range of each topic, if rows name their records; otherwise empty.
        gaps: Reasons why records may have been deleted since; empty if there are none.
        notes: Further remarks for the report.
    """

    topic: str
    read: Callable[[Meter], Iterator[InputRecord]] = lambda _meter: iter(())
    standing: Callable[[int, int], Standing] = lambda _number, _offset: Standing.AHEAD
    partitions: tuple[str, ...] = ()
    ranges: tuple[TopicRange, ...] = ()
    gaps: str = ""
    notes: tuple[str, ...] = ()


def name_partitions(partitions: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return partition numbers, with the topic before them if there are several topics."""
    pairs = list(partitions)
    is_alone = len({topic for topic, _ in pairs}) == 1
    return tuple(str(number) if is_alone else f"{topic}/{number}" for topic, number in pairs)


def unknown_begin(topic: str) -> str:
    """Return the note for a topic whose start position was not recorded."""
    return (
        f"the position at which the run started to read {topic!r} is unknown: audited from "
        "the earliest record"
    )


def input_gone(job: str, problem: str) -> HeadgateError:
    """Return the error for records that were read and have been deleted since."""
    return HeadgateError(
        "AUDIT_INPUT_GONE",
        f"cannot audit job {job!r}: {problem}, so records that it read are missing",
        hint=f"headgate run FLOW --fresh, then headgate audit {job}",
    )


class AuditedRun(Protocol):
    """The audited run.

    Attributes:
        batch: The last batch that counts.
        earlier: The ancestors of this run and the runs abandoned on the way, each with the last
            batch whose rows do not count.
    """

    @property
    def job(self) -> str: ...

    @property
    def lineage(self) -> str: ...

    @property
    def batch(self) -> int: ...

    @property
    def earlier(self) -> Mapping[str, int]: ...


class Row(NamedTuple):
    """A row of the audited run.

    Attributes:
        source: The source of its record; None if the log does not record it, and then the record's
            position is unknown too.
        is_ahead: True if the log shows that its batch does not count yet.
        is_earlier: True if an ancestor of the audited run wrote it.
    """

    source: str | None
    partition: int
    offset: int
    value: bytes | None
    is_ahead: bool = False
    is_earlier: bool = False


@dataclass(slots=True)
class Passed:
    """Counts the rows of an output while they are read."""

    rows: int = 0
    other_runs: int = 0
    foreign: int = 0
    keyless: int = 0


@dataclass(frozen=True, slots=True)
class OutputRows:
    """The rows of one output.

    Attributes:
        read: Yields the rows of the run, and counts all rows.
        doubts: Reasons why a written row may be missing here.
    """

    read: Callable[[Passed, Meter], Iterator[Row]]
    doubts: tuple[str, ...] = ()


class RowMark(NamedTuple):
    """The record that a row on a broker came from, and the run that wrote the row."""

    lineage: str
    source: str
    partition: int
    offset: int


class MarkedRecord(Protocol):
    """A record of an output on a broker."""

    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]: ...

    @property
    def value(self) -> bytes | None: ...


def read_marked_rows(
    run: AuditedRun, records: Iterable[MarkedRecord], passed: Passed
) -> Iterator[Row]:
    """Yield the rows of a run and of the runs it comes from, and count all records."""
    for record in records:
        mark = find_row_mark(record.headers)
        if mark is None:
            passed.foreign += 1
        elif mark.lineage == run.lineage:
            passed.rows += 1
            yield Row(mark.source, mark.partition, mark.offset, record.value)
        else:
            passed.other_runs += 1
            if mark.lineage in run.earlier:
                yield Row(mark.source, mark.partition, mark.offset, record.value, is_earlier=True)


def find_row_mark(headers: Iterable[tuple[str, bytes | None]]) -> RowMark | None:
    """Return the mark of a row, or None if it has no readable mark."""
    for name, value in headers:
        if name == _HEADER and value is not None:
            # Rows that are not the first made of their record have a number behind the offset.
            parts = value.split(b"/")
            known = _parse_head(b"/".join(parts[:3]))
            is_mark = known and len(parts) in (4, 5) and all(map(bytes.isdigit, parts[3:]))
            return RowMark(*known, int(parts[3])) if known and is_mark else None
    return None


@lru_cache(maxsize=4096)
def _parse_head(head: bytes) -> tuple[str, str, int] | None:
    """Return lineage, source and partition, which are the same in very many rows."""
    try:
        lineage, source, partition = head.decode().split("/")
    except ValueError:
        return None
    return (lineage, source, int(partition)) if partition.isdecimal() else None
