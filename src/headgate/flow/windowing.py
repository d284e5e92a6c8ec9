"""Windows of event time: plain values, and the functions that create them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from headgate._units import format_duration, parse_duration
from headgate.errors import HeadgateError

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size, back to back, aligned to the full hour or day in UTC."""

    size: timedelta

    def describe(self) -> str:
        """Return the windows in words."""
        return f"tumbling {format_duration(self.size)}"


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of one size that start at a fixed interval: an event is in several."""

    size: timedelta
    every: timedelta

    def describe(self) -> str:
        """Return the windows in words."""
        return f"sliding {format_duration(self.size)} every {format_duration(self.every)}"


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that last while events follow one another within a gap."""

    gap: timedelta

    def describe(self) -> str:
        """Return the windows in words."""
        return f"session with a gap of {format_duration(self.gap)}"


Windows: TypeAlias = Tumbling | Sliding | Session


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
