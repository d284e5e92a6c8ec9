"""The records of a source's range, on any log, and where a place lies as seen from the range."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from headgate.errors import HeadgateError
from headgate.jobs.audit.progress import Meter


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


class Input(Protocol):
    """The records that a run read from one source.

    Attributes:
        topic: The topic, or what stands for several.
        partitions: What the report calls them.
        gaps: Why some may have gone since, in words; empty where none may.
        notes: What has to be known besides.
    """

    @property
    def topic(self) -> str: ...

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
