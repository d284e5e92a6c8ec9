"""How event time is cut into windows: plain values, and the functions users make them with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from headgate._units import format_duration, parse_duration
from headgate.errors import HeadgateError

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size, one after the other, from the full hour, day, ... on in UTC."""

    size: timedelta

    def describe(self) -> str:
        """Return the windows in words."""
        return f"tumbling {format_duration(self.size)}"


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of one size that begin every so often: an event is in several."""

    size: timedelta
    every: timedelta

    def describe(self) -> str:
        """Return the windows in words."""
        return f"sliding {format_duration(self.size)} every {format_duration(self.every)}"


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that last as long as events follow one another within a gap."""

    gap: timedelta

    def describe(self) -> str:
        """Return the windows in words."""
        return f"session with a gap of {format_duration(self.gap)}"


Windows: TypeAlias = Tumbling | Sliding | Session


def tumbling(size: str | timedelta) -> Tumbling:
    """Return windows of one size, side by side: `tumbling("15m")`."""
    return Tumbling(parse_span(size, "tumbling"))


def sliding(size: str | timedelta, *, every: str | timedelta) -> Sliding:
    """Return windows of one size that overlap: `sliding("15m", every="5m")`."""
    windows = Sliding(parse_span(size, "sliding"), parse_span(every, "sliding"))
    if windows.every > windows.size:
        raise HeadgateError(
            "BAD_WINDOW",
            f"cannot make sliding windows of {format_duration(windows.size)} every "
            f"{format_duration(windows.every)}: events in between would be in none",
            hint="let every be the size or less, or use tumbling",
        )
    return windows


def session(*, gap: str | timedelta) -> Session:
    """Return windows that end once nothing has happened for a while: `session(gap="30m")`."""
    return Session(parse_span(gap, "session"))


def parse_span(given: str | timedelta, what: str) -> timedelta:
    """Return a span of time of one millisecond or more, or refuse it."""
    span = parse_duration(given) if isinstance(given, str) else given
    if span < _MILLISECOND or span % _MILLISECOND:
        raise HeadgateError(
            "BAD_WINDOW",
            f"cannot use {what} with {given!r}: it is no whole number of milliseconds",
            hint="use a span such as '15m' or '45s'",
        )
    return span
