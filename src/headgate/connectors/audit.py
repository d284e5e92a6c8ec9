"""What an audit reads, on any log: the records of a source's range, and the rows of an output."""

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
    """How many records of a topic were read, of how many at most; None if unknown."""

    topic: str
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Meter:
    """Tells how far a reading has come."""

    tell: Callable[[AuditProgress], None] = lambda _: None

    def over(self, records: Iterable[T], topic: str, total: int | None) -> Iterator[T]:
        """Yield the records, and tell of them on the way."""
        done = 0
        self.tell(AuditProgress(topic, 0, total))
        for done, record in enumerate(records, start=1):
            yield record
            if done % _EVERY == 0:
                self.tell(AuditProgress(topic, done, total))
        # Offsets have gaps: there were no more records, however many were thought possible.
        self.tell(AuditProgress(topic, done, done))


class Standing(enum.Enum):
    """Where a place lies as seen from the range that is audited."""

    BEFORE = "before"
    WITHIN = "within"
    AHEAD = "ahead"


class InputRecord(NamedTuple):
    """One record of the range.

    Attributes:
        partition: The place of its partition in the input's list of them.
        number: What a row of this record says of its partition.
        offset: Likewise of its offset.
    """

    partition: int
    topic: str
    number: int
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TopicRange:
    """From where to where one topic was read, as far as its records are kept.

    Attributes:
        starts: The first offset, by partition.
        ends: The offset behind the last that was read, by partition.
        kept: The offset behind the last that is there; no more than the end.
    """

    topic: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    kept: Mapping[int, int]

    @property
    def total(self) -> int:
        """How many records there are at most."""
        return sum(self.kept[number] - start for number, start in self.starts.items())


class Input(Protocol):
    """The records that a run read from one source.

    Attributes:
        topic: The topic, or what stands for several.
        ranges: Of each topic, if rows say where their records were; empty otherwise.
        partitions: What the report calls them.
        gaps: Why some may have gone since, in words; empty where none may.
        notes: What has to be known besides.
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
        """Tell where the place that a row names lies."""


class NothingRead:
    """For a source of which nothing was read yet."""

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
        """Tell that all is still to come."""
        return Standing.AHEAD


def unknown_begin(topic: str) -> str:
    """Return the note for a topic of which nobody noted where the run began to read it."""
    return (
        f"where the run began to read {topic!r} is not known: audited from the earliest record "
        "there is"
    )


def input_gone(job: str, found: str) -> HeadgateError:
    """Return the error for records that were read and cannot be read again."""
    return HeadgateError(
        "AUDIT_INPUT_GONE",
        f"cannot audit job {job!r}: {found}, and with it records that it read",
        hint=f"headgate run FLOW --fresh, then headgate audit {job}",
    )


class AuditedRun(Protocol):
    """The run that is audited.

    Attributes:
        batch: The last one that counts.
        earlier: The runs that this one comes from, and those that were left behind on the way,
            each with the last batch whose rows do not count.
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
    """A row of the run that is audited.

    Attributes:
        source: The source of its record; None where the log does not tell, and then neither
            where the record was.
        is_ahead: Whether the log itself tells that its batch does not count yet.
        is_earlier: Whether a run wrote it that the audited one comes from.
    """

    source: str | None
    partition: int
    offset: int
    value: bytes | None
    is_ahead: bool = False
    is_earlier: bool = False


@dataclass(slots=True)
class Passed:
    """Counts what is in an output, as it is read."""

    rows: int = 0
    other_runs: int = 0
    foreign: int = 0
    keyless: int = 0


class OutputRows(Protocol):
    """The rows of one output.

    Attributes:
        doubts: Why a row that was written may not be among them, in words.
    """

    @property
    def doubts(self) -> tuple[str, ...]: ...

    def read(self, passed: Passed, meter: Meter) -> Iterator[Row]:
        """Yield the rows of the run, and count all there are."""
