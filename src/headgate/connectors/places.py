"""The records of one topic by their places: its last ones, one by one, or all that are kept.

Each connector reads and fills its own topics; `PlacedRecord` is what they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRecord:
    """A record, and where it is.

    Attributes:
        place: Names it in its topic for as long as it is kept: `PARTITION:OFFSET` on Kafka,
            `PARTITION:LEDGER:ENTRY` on Pulsar (and its place in a batch), `FILE:BYTE` in a folder.
        timestamp: When it was appended, in epoch milliseconds; -1 where nobody tells.
        value: None for a record without one.
        headers: Names and values in the order they were written.
        event_time: What its producer said, in epoch milliseconds; None where nothing was said.
    """

    place: str
    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    event_time: int | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one part of a topic keeps, a partition or a file, or the end of that.

    Attributes:
        part: Names the part.
        first: Where it begins; later places are greater.
        end: The place behind the last.
        kept_from: Where the part itself begins: before `first` if only its end was asked for.
    """

    part: str
    first: Any
    end: Any
    kept_from: Any


Spot: TypeAlias = tuple[int, int]
"""Where the kernel says that a record stood: partition and offset, each as it counts them."""

Send: TypeAlias = Callable[[Sequence[PlacedRecord]], None]
"""Takes records and returns when all are acknowledged; each goes to its partition."""


class Places(Protocol):
    """The records of one topic. What it raises is what the log's clients raise."""

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the last records, newest last."""

    def stretches(self, at_most: int | None = None) -> list[Stretch]:
        """Return what is kept, older parts first.

        Args:
            at_most: About so many of the newest records over all parts; None for all.
        """

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:
        """Yield the records of a stretch, oldest first."""

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:
        """Return the records at these places; those that are not there are left out."""

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:
        """Return the records that stood where the kernel says, as far as they are kept."""

    def sending(self) -> AbstractContextManager[Send]:
        """Give a way to append records to the topic, which must be there."""
