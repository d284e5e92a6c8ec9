"""The clock of tests: its time passes only when the code under test sleeps or a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


class FakeClock:
    """A `headgate._clock.Clock` that never waits.

    Args:
        start: The time of day at first.
        steps: What each sleep does, in order; a sleep after the last step fails. None lets every
            sleep pass.

    Attributes:
        slept: The duration of every sleep, oldest first.
    """

    def __init__(
        self, start: datetime = NOON, *, steps: Iterable[Callable[[], object]] | None = None
    ) -> None:
        self.slept: list[timedelta] = []
        self._time_of_day = start
        self._passed = timedelta(0)
        self._steps = None if steps is None else list(steps)

    @property
    def seconds(self) -> float:
        """The time that has passed since the clock was made."""
        return self._passed.total_seconds()

    def now(self) -> datetime:
        return self._time_of_day

    def monotonic(self) -> float:
        # Not from zero: a machine's clock does not start there either.
        return 100.0 + self.seconds

    def sleep(self, duration: timedelta) -> None:
        assert self._steps != [], f"no sleep is expected, got one of {duration}"
        self.slept.append(duration)
        self._pass(max(duration, timedelta(0)))
        if self._steps is not None:
            self._steps.pop(0)()

    def advance(self, **duration: float) -> datetime:
        """Let time pass, given as to `timedelta`, and return the time of day."""
        self._pass(timedelta(**duration))
        return self._time_of_day

    def jump(self, **duration: float) -> None:
        """Set the time of day forward or back while no time passes."""
        self._time_of_day += timedelta(**duration)

    def _pass(self, duration: timedelta) -> None:
        self._passed += duration
        self._time_of_day += duration


class SlowClock(FakeClock):
    """A clock on which each look takes 30 ms: work between two looks takes that long."""

    def monotonic(self) -> float:
        self.advance(milliseconds=30)
        return super().monotonic()
