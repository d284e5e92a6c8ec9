"""Sending made-up data: at full speed, or at a steady rate in small slices."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol, TypeAlias

from headgate._clock import Clock
from headgate.errors import HeadgateError
from headgate.producers.store import StoreShape, StoreTopic, generate
from headgate.producers.visits import VisitsShape, generate_visits

SLICES_PER_SECOND = 10

Sink: TypeAlias = Callable[[StoreTopic, bytes, int], None]
"""Takes a topic, lines with their newlines and how many; returns when they are acknowledged."""

VisitsSink: TypeAlias = Callable[[bytes, int], None]
"""Takes lines with their newlines and how many; returns when they are acknowledged."""


class Lines(Protocol):
    """Some records of one topic, as lines."""

    @property
    def lines(self) -> bytes:
        """The records, each with its newline."""

    @property
    def records(self) -> int:
        """How many there are."""


@dataclass(frozen=True, slots=True)
class Sent:
    """How many records were acknowledged, by topic."""

    users: int = 0
    items: int = 0
    orders: int = 0

    @property
    def records(self) -> int:
        """How many in all."""
        return self.users + self.items + self.orders

    def plus(self, topic: StoreTopic, records: int) -> "Sent":
        """Return the counts with some more records."""
        match topic:
            case StoreTopic.USERS:
                return replace(self, users=self.users + records)
            case StoreTopic.ITEMS:
                return replace(self, items=self.items + records)
            case StoreTopic.ORDERS:
                return replace(self, orders=self.orders + records)

    @property
    def summary(self) -> str:
        """The counts as a sentence; topics that got nothing are left out."""
        named = (("user", self.users), ("item", self.items), ("order", self.orders))
        parts = [f"'{count}' {name} records" for name, count in named if count]
        if not parts:
            return "Sent no records"
        *front, final = parts
        return f"Sent {', '.join(front)} and {final}" if front else f"Sent {final}"


class Pace:
    """A steady rate of records: cuts chunks into slices and says when the next may go.

    The schedule is fixed when the first slice is admitted. A sender that falls behind is not
    held until it has caught up, so that the rate holds over the whole run.
    """

    def __init__(self, rate: float | None, clock: Clock) -> None:
        """Set the rate in records per second; None is full speed.

        Raises:
            HeadgateError: BAD_RATE: the rate is not above 0.
        """
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise HeadgateError(
                "BAD_RATE",
                f"cannot send at a rate of {rate:g} records per second: it must be above 0",
                hint="--rate 2000, or leave it out for full speed",
            )
        self._rate = rate
        self._clock = clock
        self._start: float | None = None
        self._admitted = 0

    def slices(self, chunk: Lines) -> Iterator[tuple[bytes, int]]:
        """Yield the chunk's lines in slices with their counts, each when it is due.

        A slice is about a tenth of a second's records; at full speed it is the whole chunk.
        """
        if self._rate is None:
            yield chunk.lines, chunk.records
            return
        size = max(1, round(self._rate / SLICES_PER_SECOND))
        lines = chunk.lines.splitlines(keepends=True)
        for first in range(0, len(lines), size):
            part = lines[first : first + size]
            self._wait(self._rate)
            self._admitted += len(part)
            yield b"".join(part), len(part)

    def _wait(self, rate: float) -> None:
        now = self._clock.monotonic()
        if self._start is None:
            self._start = now
        due = self._start + self._admitted / rate
        if due > now:
            self._clock.sleep(timedelta(seconds=due - now))


def send_store(
    shape: StoreShape,
    sink: Sink,
    *,
    clock: Clock,
    rate: float | None = None,
    progress: Callable[[Sent], None] = lambda _: None,
) -> Sent:
    """Send a round of store data and return what was acknowledged.

    Users and items go first and at full speed; the rate holds for orders.

    Args:
        shape: What to send.
        sink: Called with each slice; what it raises ends the sending.
        clock: Keeps the rate.
        rate: Orders per second; None is full speed.
        progress: Called with the counts so far after each slice that the sink has acknowledged.
    """
    paced, unpaced = Pace(rate, clock), Pace(None, clock)
    sent = Sent()
    for chunk in generate(shape):
        pace = paced if chunk.topic is StoreTopic.ORDERS else unpaced
        for lines, records in pace.slices(chunk):
            sink(chunk.topic, lines, records)
            sent = sent.plus(chunk.topic, records)
            progress(sent)
    return sent


def send_visits(
    shape: VisitsShape,
    sink: VisitsSink,
    *,
    clock: Clock,
    rate: float | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Send a round of visits and return how many events were acknowledged.

    Args:
        shape: What to send.
        sink: Called with each slice; what it raises ends the sending.
        clock: Keeps the rate.
        rate: Events per second; None is full speed.
        progress: Called with the count so far after each slice that the sink has acknowledged.
    """
    pace = Pace(rate, clock)
    sent = 0
    for chunk in generate_visits(shape):
        for lines, records in pace.slices(chunk):
            sink(lines, records)
            sent += records
            progress(sent)
    return sent
