"""The clock as a value, so that code that waits can be tested without waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The clock as the rest of Headgate uses it."""

    def now(self) -> datetime:
        """Return the current time in UTC; it may jump."""

    def monotonic(self) -> float:
        """Return monotonic seconds since an arbitrary moment."""

    def sleep(self, duration: timedelta) -> None:
        """Return after `duration`; at once if it is zero or negative."""


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """Return the machine's time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()

    def sleep(self, duration: timedelta) -> None:
        """Block this thread for `duration`."""
        seconds = duration.total_seconds()
        if seconds > 0:
            time.sleep(seconds)


class Stopwatch:
    """The time since it was made, by a clock."""

    __slots__ = ("_began", "_clock")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()

    def elapsed(self) -> timedelta:
        """Return the time that has passed, to the millisecond."""
        return timedelta(milliseconds=round((self._clock.monotonic() - self._began) * 1000))
