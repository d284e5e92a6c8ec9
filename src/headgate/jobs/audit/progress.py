"""How far the reading has come, told now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
_EVERY = 8_192


@dataclass(frozen=True, slots=True)
class AuditProgress:
    """How many records of a topic were read, of how many at most; None where nobody can tell."""

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
