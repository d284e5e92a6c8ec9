"""Sends generated data: at full speed, or at a steady rate in small slices."""

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
"""Takes a topic, lines with newlines and their number; returns when they are acknowledged."""

VisitsSink: TypeAlias = Callable[[bytes, int], None]
"""Takes lines with newlines and their number; returns when they are acknowledged."""


class Lines(Protocol):
    """Some records of one topic, as lines."""

    @property
    def lines(self) -> bytes:
        """The records, each with its newline."""

    @property
    def records(self) -> int:
        """The number of records."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The number of acknowledged records, by topic."""

    users: int = 0
    items: int = 0
    orders: int = 0

    @property
    def records(self) -> int:
        """The total number."""
        return self.users + self.items + self.orders

    def plus(self, topic: StoreTopic, records: int) -> "Sent":
        """Return the counts plus further records."""
        return replace(self, **{topic.value: getattr(self, topic.value) + records})

    @property
    def summary(self) -> str:
        """The counts as a sentence, without topics that got nothing."""
        named = (("user", self.users), ("item", self.items), ("order", self.orders))
        parts = [f"'{count}' {name} records" for name, count in named if count]
        if not parts:
            return "Sent no records"
        *front, final = parts
        return f"Sent {', '.join(front)} and {final}" if front else f"Sent {final}"


class Pace:
    """A steady rate of records: cuts chunks into slices and times them.

    The schedule starts with the first slice. A sender that falls behind is not delayed until it has
    caught up, so that the rate holds over the whole run.
    """

    def __init__(self, rate: float | None, clock: Clock) -> None:
        """Set the rate in records per second; None is full speed.

        Raises:
            HeadgateError: BAD_RATE: the rate is not above 0.
        """
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise HeadgateError(
                "BAD_RATE",
                f"cannot send at {rate:g} records per second: the rate must be greater than 0",
                hint="--rate 2000, or omit it for full speed",
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
    """Send a round of store data and return the acknowledged counts.

    Users and items go first and at full speed; the rate applies to orders.

    Args:
        shape: The data to send.
        sink: Called with each slice; its errors end the sending.
        clock: Measures the rate.
        rate: Orders per second; None for full speed.
        progress: Called with the counts so far after each acknowledged slice.
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
    """Send a round of visits and return the number of acknowledged events.

    Args:
        shape: The data to send.
        sink: Called with each slice; its errors end the sending.
        clock: Measures the rate.
        rate: Events per second; None for full speed.
        progress: Called with the count so far after each acknowledged slice.
    """
    pace = Pace(rate, clock)
    sent = 0
    for chunk in generate_visits(shape):
        for lines, records in pace.slices(chunk):
            sink(lines, records)
            sent += records
            progress(sent)
    return sent
