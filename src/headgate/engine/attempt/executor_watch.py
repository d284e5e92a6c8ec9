"""How long a job waits for executors, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from headgate._clock import Clock
from headgate._units import format_duration, format_size
from headgate.engine.attempt.executors import Executor, Executors
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
    """Reports each executor of a driver that comes or goes, even if it does so between two looks.

    Args:
        read: Returns the executors since the driver began, lost ones included.
    """

    def __init__(
        self, settings: SparkSettings, read: Callable[[], Executors], clock: Clock
    ) -> None:
        self._settings = settings
        self._read = read
        self._clock = clock
        self._known = 0
        # A master that was started again gives ids of lost executors to new ones.
        self._added: set[tuple[str, datetime]] = set()
        self._lost: set[tuple[str, datetime]] = set()
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
        executors = self._read()
        return [*self._changes(executors.listed), *self._shortage(executors.registered, now)]

    def _changes(self, listed: tuple[Executor, ...]) -> list[ExecutorEvent]:
        """Return an event for each executor that came or went, in the order of time."""
        changes: list[tuple[datetime, int, Executor]] = []
        for executor in listed:
            key = executor.id, executor.since
            if key not in self._added:
                self._added.add(key)
                changes.append((executor.since, 1, executor))
            if executor.lost_at is not None and key not in self._lost:
                self._lost.add(key)
                changes.append((executor.lost_at, -1, executor))
        # The list has only the last of the lost ones.
        listed_keys = {(executor.id, executor.since) for executor in listed}
        self._added &= listed_keys
        self._lost &= listed_keys
        events = []
        for _, step, executor in sorted(changes, key=lambda change: change[0]):
            self._known += step
            name = f"executor {executor.id} on {executor.host}"
            if step > 0:
                events.append(
                    ExecutorEvent("EXECUTOR_ADDED", f"{name} registered: {self._known} now")
                )
            else:
                left = f"{self._known} left" if self._known else "none is left"
                reason = executor.lost_reason or "Spark gives no reason"
                events.append(ExecutorEvent("EXECUTOR_LOST", f"{name} was lost, {left}: {reason}"))
        return events

    def _shortage(self, count: int, now: float) -> Iterator[ExecutorEvent]:
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
