"""The clock as a value, so that what waits or looks at the time can be tested without waiting."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the rest of Headgate may ask of time."""

    def now(self) -> datetime:
        """Return the time of day, aware and in UTC; it may jump."""

    def monotonic(self) -> float:
        """Return seconds since some moment; it never goes back."""

    def sleep(self, duration: timedelta) -> None:
        """Return once `duration` has passed; at once where it is zero or negative."""


class SystemClock:
    """The machine's own clock."""

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
