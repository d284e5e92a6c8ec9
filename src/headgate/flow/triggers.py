"""Triggers of early results, before a window is complete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from headgate._units import format_duration
from headgate.errors import HeadgateError
from headgate.flow.windowing import parse_span


@dataclass(frozen=True, slots=True)
class EveryEvents:
    """After every n events of the window."""

    n: int

    def describe(self) -> str:
        """Return the trigger in words."""
        return f"every {self.n} events"


@dataclass(frozen=True, slots=True)
class EveryEventTime:
    """When the watermark passes a multiple of the span, if there are new events."""

    span: timedelta

    def describe(self) -> str:
        """Return the trigger in words."""
        return f"every {format_duration(self.span)} of event time"


@dataclass(frozen=True, slots=True)
class EveryProcessingTime:
    """When the span has passed on the clock since the last result, if there are new events."""

    span: timedelta

    def describe(self) -> str:
        """Return the trigger in words."""
        return f"every {format_duration(self.span)} of processing time"


Trigger: TypeAlias = EveryEvents | EveryEventTime | EveryProcessingTime


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
