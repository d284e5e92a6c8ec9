"""When a window gives a result before it is complete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from headgate._units import format_duration
from headgate.errors import HeadgateError
from headgate.flow.windowing import parse_span


@dataclass(frozen=True, slots=True)
class EveryEvents:
    """With each n-th event of the window."""

    n: int

    def describe(self) -> str:
        """Return the trigger in words."""
        return f"every {self.n} events"


@dataclass(frozen=True, slots=True)
class EveryEventTime:
    """Whenever the watermark passes a multiple of the span, if there are new events."""

    span: timedelta

    def describe(self) -> str:
        """Return the trigger in words."""
        return f"every {format_duration(self.span)} of event time"


@dataclass(frozen=True, slots=True)
class EveryProcessingTime:
    """Whenever the span has gone by on the clock since the last result, if there are new events."""

    span: timedelta

    def describe(self) -> str:
        """Return the trigger in words."""
        return f"every {format_duration(self.span)} of processing time"


Trigger: TypeAlias = EveryEvents | EveryEventTime | EveryProcessingTime


def every_events(n: int) -> EveryEvents:
    """Return a trigger for an early result with each n-th event of a window."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise HeadgateError(
            "BAD_WINDOW",
            f"cannot use every_events with {n!r}: it is no number of events",
            hint="use every_events(4)",
        )
    return EveryEvents(n)


def every_event_time(span: str | timedelta) -> EveryEventTime:
    """Return a trigger for an early result every so much of event time."""
    return EveryEventTime(parse_span(span, "every_event_time"))


def every_processing_time(span: str | timedelta) -> EveryProcessingTime:
    """Return a trigger for an early result every so much time on the clock."""
    return EveryProcessingTime(parse_span(span, "every_processing_time"))
