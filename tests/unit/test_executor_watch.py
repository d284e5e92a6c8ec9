"""What a job says of its executors, and when it gives up waiting for one."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate.engine.session.executors import ExecutorWatch
from headgate.engine.settings import SparkSettings
from headgate.errors import Domain, HeadgateError

SETTINGS = SparkSettings(
    parallelism=1,
    master="spark://h:7077",
    executor_wait=timedelta(seconds=30),
    log_file=Path("spark.log"),
)


class Cluster:
    """A cluster of so many executors, and a second between two looks at it."""

    def __init__(self) -> None:
        self.executors = 0
        self.clock = FakeClock()
        self.watch = ExecutorWatch(SETTINGS, lambda: self.executors, self.clock)

    def after(self, seconds: int, executors: int | None = None) -> list[tuple[str, str]]:
        """Return what was reported within so many seconds."""
        if executors is not None:
            self.executors = executors
        found = []
        for _ in range(seconds):
            self.clock.sleep(timedelta(seconds=1))
            found += self.watch.look()
        return [(event.kind, event.message) for event in found]


def test_executors_that_come_and_go_are_reported_once() -> None:
    cluster = Cluster()
    assert cluster.after(3) == []
    assert cluster.after(9, executors=2) == [("EXECUTOR_ADDED", "2 registered")]
    assert cluster.watch.known == 2
    assert cluster.after(9, executors=1) == [("EXECUTOR_LOST", "1 of 2 ended, 1 left")]
    assert cluster.after(9, executors=2) == [("EXECUTOR_ADDED", "2 registered")]


def test_a_cluster_without_workers_is_reported_and_then_given_up() -> None:
    cluster = Cluster()
    events = cluster.after(29)
    assert [kind for kind, _ in events] == ["NO_EXECUTORS"]
    assert "spark://h:7077 has given no executor yet: one needs 1 core and 1GiB" in events[0][1]
    with pytest.raises(HeadgateError) as caught:
        cluster.after(1)
    error = caught.value
    assert (error.code, error.domain) == ("NO_EXECUTORS", Domain.EXTERNAL)
    assert error.retryable


def test_a_job_that_lost_all_executors_waits_as_long() -> None:
    cluster = Cluster()
    cluster.after(5, executors=1)
    events = cluster.after(29, executors=0)
    assert [kind for kind, _ in events] == ["EXECUTOR_LOST", "NO_EXECUTORS"]
    # One that returns in time starts the wait anew.
    assert cluster.after(5, executors=1) == [("EXECUTOR_ADDED", "1 registered")]
    cluster.after(29, executors=0)
    with pytest.raises(HeadgateError, match="there was no executor for 30s"):
        cluster.after(2)


def test_the_driver_is_asked_at_most_once_a_second() -> None:
    asked: list[float] = []
    clock = FakeClock()

    def count() -> int:
        asked.append(clock.monotonic())
        return 1

    watch = ExecutorWatch(SETTINGS, count, clock)
    for _ in range(50):
        watch.look()
        clock.sleep(timedelta(milliseconds=100))
    assert len(asked) <= 5
