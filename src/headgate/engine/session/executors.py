"""How long a job waits for executors, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from headgate._clock import Clock
from headgate._units import format_duration, format_size
from headgate.engine.settings import SparkSettings
from headgate.errors import Domain, HeadgateError

# Between two looks, in seconds.
_LOOK_EVERY = 1.0
# An executor takes a few seconds to start, and to start again.
_QUIET = 5.0


@dataclass(frozen=True, slots=True)
class ExecutorEvent:
    """A change of the executors: its kind, and a sentence."""

    kind: str
    message: str


class ExecutorWatch:
    """Counts the executors of a driver, and reports what changes.

    Args:
        count: Returns the number of executors that are registered.
    """

    def __init__(self, settings: SparkSettings, count: Callable[[], int], clock: Clock) -> None:
        self._settings = settings
        self._count = count
        self._clock = clock
        self._known = 0
        self._none_since: float | None = clock.monotonic()
        self._looked_at = float("-inf")
        self._has_said_none = False

    @property
    def known(self) -> int:
        """The number of executors at the last look."""
        return self._known

    def look(self) -> list[ExecutorEvent]:
        """Return what has changed since the last call.

        Raises:
            HeadgateError: NO_EXECUTORS, if there was none for too long.
        """
        now = self._clock.monotonic()
        if now - self._looked_at < _LOOK_EVERY:
            return []
        self._looked_at = now
        return list(self._changes(self._count(), now))

    def _changes(self, count: int, now: float) -> Iterator[ExecutorEvent]:
        before, self._known = self._known, count
        if count < before:
            left = f"{count} left" if count else "none is left"
            yield ExecutorEvent("EXECUTOR_LOST", f"{before - count} of {before} ended, {left}")
        elif count > before:
            yield ExecutorEvent("EXECUTOR_ADDED", f"{count} registered")
        if count:
            self._none_since, self._has_said_none = None, False
            return
        if self._none_since is None:
            self._none_since = now
        waited = now - self._none_since
        if waited >= self._settings.executor_wait.total_seconds():
            raise self._given_up()
        if waited >= _QUIET and not self._has_said_none:
            self._has_said_none = True
            yield ExecutorEvent("NO_EXECUTORS", self._missing())

    def _missing(self) -> str:
        settings = self._settings
        cores = settings.executor_cores or 1
        return (
            f"{settings.master} has given no executor yet: one needs {cores} "
            f"{'core' if cores == 1 else 'cores'} and {format_size(settings.executor_memory)} of a "
            "worker"
        )

    def _given_up(self) -> HeadgateError:
        wait = format_duration(self._settings.executor_wait)
        return HeadgateError(
            "NO_EXECUTORS",
            f"cannot run on {self._settings.master}: there was no executor for {wait}, and one "
            f"needs {format_size(self._settings.executor_memory)} and a free core of a worker",
            hint="start workers, or free some: headgate cluster status; or ask for less: "
            "--executor-memory 512MiB",
            domain=Domain.EXTERNAL,
            retryable=True,
        )
