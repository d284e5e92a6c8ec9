"""The input of an audit on any log: the records of a source's range, and the rows of an output."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from headgate.errors import HeadgateError

T = TypeVar("T")
_EVERY = 8_192


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


class Input(Protocol):
    """The records that a run read from one source.

    Attributes:
        topic: The topic, or the pattern for several topics.
        ranges: The range of each topic, if rows name their records; otherwise empty.
        partitions: The names of the partitions in the report.
        gaps: Reasons why records may have been deleted since; empty if there are none.
        notes: Further remarks for the report.
    """

    @property
    def topic(self) -> str: ...

    @property
    def ranges(self) -> tuple[TopicRange, ...]: ...

    @property
    def partitions(self) -> tuple[str, ...]: ...

    @property
    def gaps(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def read(self, meter: Meter) -> Iterator[InputRecord]:
        """Yield every record of the range."""

    def standing(self, number: int, offset: int) -> Standing:
        """Return the location of the position that a row names."""


class NothingRead:
    """The input of a source from which nothing was read yet."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.ranges: tuple[TopicRange, ...] = ()
        self.partitions: tuple[str, ...] = ()
        self.gaps = ""
        self.notes: tuple[str, ...] = ()

    def read(self, _meter: Meter) -> Iterator[InputRecord]:
        """Yield nothing."""
        return iter(())

    def standing(self, _number: int, _offset: int) -> Standing:
        """Report every position as not read yet."""
        return Standing.AHEAD


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


class OutputRows(Protocol):
    """The rows of one output.

    Attributes:
        doubts: Reasons why a written row may be missing here.
    """

    @property
    def doubts(self) -> tuple[str, ...]: ...

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all rows."""
