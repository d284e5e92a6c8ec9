"""Windows of event time and triggers of early results: plain values, and how users create them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, TypeAlias

from headgate._units import format_duration, parse_duration
from headgate.errors import HeadgateError

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size, back to back, aligned to the full hour or day in UTC."""

    size: timedelta

    tag: ClassVar[str] = "tumbling"

    def describe(self) -> str:
        return f"tumbling {format_duration(self.size)}"


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of one size that start at a fixed interval: an event is in several."""

    size: timedelta
    every: timedelta

    tag: ClassVar[str] = "sliding"

    def describe(self) -> str:
        return f"sliding {format_duration(self.size)} every {format_duration(self.every)}"


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that last while events follow one another within a gap."""

    gap: timedelta

    tag: ClassVar[str] = "session"

    def describe(self) -> str:
        return f"session with a gap of {format_duration(self.gap)}"


@dataclass(frozen=True, slots=True)
class EveryEvents:
    """After every n events of the window."""

    n: int

    tag: ClassVar[str] = "events"

    def describe(self) -> str:
        return f"every {self.n} events"


@dataclass(frozen=True, slots=True)
class EveryEventTime:
    """When the watermark passes a multiple of the interval, if there are new events."""

    every: timedelta

    tag: ClassVar[str] = "event-time"

    def describe(self) -> str:
        return f"every {format_duration(self.every)} of event time"


@dataclass(frozen=True, slots=True)
class EveryProcessingTime:
    """When the interval has passed on the clock since the last result, if there are new events."""

    every: timedelta

    tag: ClassVar[str] = "processing-time"

    def describe(self) -> str:
        return f"every {format_duration(self.every)} of processing time"


Windows: TypeAlias = Tumbling | Sliding | Session
Trigger: TypeAlias = EveryEvents | EveryEventTime | EveryProcessingTime


def tumbling(size: str | timedelta) -> Tumbling:
    """Return windows of one size, back to back: `tumbling("15m")`."""
    return Tumbling(parse_span(size, "tumbling"))


def sliding(size: str | timedelta, *, every: str | timedelta) -> Sliding:
    """Return windows of one size that overlap: `sliding("15m", every="5m")`."""
    windows = Sliding(parse_span(size, "sliding"), parse_span(every, "sliding"))
    if windows.every > windows.size:
        raise HeadgateError(
            "BAD_WINDOW",
            f"cannot use sliding windows of {format_duration(windows.size)} every "
            f"{format_duration(windows.every)}: events in between would be in no window",
            hint="make every at most the size, or use tumbling",
        )
    return windows


def session(*, gap: str | timedelta) -> Session:
    """Return windows that end after a gap without events: `session(gap="30m")`."""
    return Session(parse_span(gap, "session"))


def every_events(n: int) -> EveryEvents:
    """Return a trigger for an early result after every n events of a window."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise HeadgateError(
            "BAD_WINDOW",
            f"cannot use every_events({n!r}): the number of events must be a positive integer",
            hint="use every_events(4)",
        )
    return EveryEvents(n)


def every_event_time(span: str | timedelta) -> EveryEventTime:
    """Return a trigger for an early result after each span of event time."""
    return EveryEventTime(parse_span(span, "every_event_time"))


def every_processing_time(span: str | timedelta) -> EveryProcessingTime:
    """Return a trigger for an early result after each span of processing time."""
    return EveryProcessingTime(parse_span(span, "every_processing_time"))


def parse_span(given: str | timedelta, what: str) -> timedelta:
    """Return a duration of at least one millisecond, or refuse it."""
    span = parse_duration(given) if isinstance(given, str) else given
    if span < _MILLISECOND or span % _MILLISECOND:
        raise HeadgateError(
            "BAD_WINDOW",
            f"cannot use {what} with {given!r}: it must be a positive whole number of milliseconds",
            hint="use a duration such as '15m' or '45s'",
        )
    return span
