"""The executors of an attempt: their tasks, their memory, and how they were lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate._codec import Moment, alias
from headgate._kernel.cluster_failures import explain_exit
from headgate.engine.attempt.vitals import Vitals, parse_vitals
from headgate.engine.settings import SparkSettings

# The id of a driver that runs the tasks itself.
DRIVER = "driver"
_LONGEST_REASON = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """An executor of an attempt, or the driver if it runs the tasks itself.

    Attributes:
        id: `driver` for the driver. A standalone master that was started again gives the ids of
            lost executors to new ones.
        since: When the driver first heard of it.
        slots: The tasks that it can run at a time.
        running: Tasks, as are the completed and the failed ones.
        shuffle_read: Bytes, as are the written ones.
        vitals: Its last report; None before the first one, and for the driver, which has its own.
        process: The id of its process on its host; None before its first report.
        log_folder: The folder on its host with the files `stderr` and `stdout`; empty if its output
            is in no file.
        log_links: The addresses of its logs that the cluster gives, by their names.
        lost_at: None while it is there.
        lost_reason: Empty while it is there.
    """

    id: str
    host: str
    since: Moment
    slots: int
    running: int = 0
    completed: int = 0
    failed: int = 0
    shuffle_read: int = 0
    shuffle_written: int = 0
    vitals: Vitals | None = None
    process: int | None = None
    log_folder: str = ""
    log_links: Mapping[str, str] = field(default_factory=dict)
    lost_at: Moment | None = None
    lost_reason: str = ""

    @property
    def is_alive(self) -> bool:
        return self.lost_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Executors:
    """The executors of an attempt, in the order in which they registered.

    Attributes:
        lost: The number of all that were lost; the list has the last 50 of them.
    """

    at: Moment
    listed: tuple[Executor, ...] = field(default=(), metadata=alias("executors"))
    lost: int = 0

    @property
    def alive(self) -> tuple[Executor, ...]:
        return tuple(executor for executor in self.listed if executor.is_alive)

    @property
    def registered(self) -> int:
        """The number of executors that are there; 0 with a local master."""
        return sum(executor.id != DRIVER for executor in self.alive)


def parse_executors(
    content: Mapping[str, Any], settings: SparkSettings, *, at: datetime
) -> Executors:
    """Return the executors in the kernel's form, with the limits that settings give."""
    listed = tuple(_parse(each, settings) for each in content["executors"])
    return Executors(at=at, listed=listed, lost=content["lost"])


def _parse(content: Mapping[str, Any], settings: SparkSettings) -> Executor:
    report = content.get("vitals")
    lost_at = content.get("lost_at")
    return Executor(
        id=content["id"],
        host=content["host"],
        since=_moment(content["since"]),
        slots=content["slots"],
        running=content["running"],
        completed=content["completed"],
        failed=content["failed"],
        shuffle_read=content["shuffle_read"],
        shuffle_written=content["shuffle_written"],
        vitals=parse_vitals(report, settings, at=_moment(content["at"])) if report else None,
        process=report["pid"] if report else None,
        log_folder=report["logs"] if report else "",
        log_links=content["links"],
        lost_at=_moment(lost_at) if lost_at else None,
        lost_reason=_reason(content["reason"]) if lost_at else "",
    )


def _moment(millis: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=millis)


def _reason(text: str) -> str:
    # Kubernetes adds the state of the whole pod.
    first = explain_exit(" ".join(text.split()))
    return first if len(first) <= _LONGEST_REASON else f"{first[:_LONGEST_REASON]}…"
