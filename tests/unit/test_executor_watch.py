"""What a job says of its executors, and when it gives up waiting for one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock

from headgate.engine.attempt.executor_watch import ExecutorWatch
from headgate.engine.attempt.executors import Executor, Executors
from headgate.engine.settings import SparkSettings
from headgate.errors import Domain, HeadgateError

SETTINGS = SparkSettings(
    parallelism=1,
    master="spark://h:7077",
    executor_wait=timedelta(seconds=30),
    log_file=Path("spark.log"),
)


class Cluster:
    """A cluster with executors that come and go, and a second between two looks at it."""

    def __init__(self) -> None:
        self.listed: list[Executor] = []
        self.clock = FakeClock()
        self.watch = ExecutorWatch(SETTINGS, self._read, self.clock)

    def _read(self) -> Executors:
        return Executors(at=self.clock.now(), listed=tuple(self.listed))

    def add(self, executor: str) -> None:
        self.listed.append(Executor(id=executor, host="h", since=self.clock.now(), slots=1))

    def lose(self, executor: str, reason: str = "") -> None:
        (number,) = [
            number
            for number, each in enumerate(self.listed)
            if each.id == executor and each.is_alive
        ]
        self.listed[number] = replace(
            self.listed[number], lost_at=self.clock.now(), lost_reason=reason
        )

    def after(self, seconds: int) -> list[tuple[str, str]]:
        """Return what was reported within so many seconds."""
        found = []
        for _ in range(seconds):
            self.clock.sleep(timedelta(seconds=1))
            found += self.watch.look()
        return [(event.kind, event.message) for event in found]


def test_executors_that_come_and_go_are_reported_once() -> None:
    cluster = Cluster()
    assert cluster.after(3) == []
    cluster.add("0")
    cluster.add("1")
    assert cluster.after(9) == [
        ("EXECUTOR_ADDED", "executor 0 on h registered: 1 now"),
        ("EXECUTOR_ADDED", "executor 1 on h registered: 2 now"),
    ]
    assert cluster.watch.known == 2
    cluster.lose("1", reason="worker lost")
    assert cluster.after(9) == [
        ("EXECUTOR_LOST", "executor 1 on h was lost, 1 left: worker lost"),
    ]
    assert cluster.watch.known == 1


def test_an_executor_that_is_replaced_between_two_looks_is_reported() -> None:
    cluster = Cluster()
    cluster.add("0")
    cluster.add("1")
    cluster.after(2)
    cluster.clock.sleep(timedelta(milliseconds=200))
    cluster.lose("1")
    cluster.clock.sleep(timedelta(milliseconds=200))
    # A new master begins to count anew.
    cluster.add("1")
    assert cluster.after(9) == [
        ("EXECUTOR_LOST", "executor 1 on h was lost, 1 left: Spark gives no reason"),
        ("EXECUTOR_ADDED", "executor 1 on h registered: 2 now"),
    ]
    assert cluster.watch.known == 2


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
    cluster.add("0")
    cluster.after(5)
    cluster.lose("0")
    events = cluster.after(29)
    assert [kind for kind, _ in events] == ["EXECUTOR_LOST", "NO_EXECUTORS"]
    # One that returns in time starts the wait anew.
    cluster.add("1")
    assert cluster.after(5) == [("EXECUTOR_ADDED", "executor 1 on h registered: 1 now")]
    cluster.lose("1")
    cluster.after(29)
    with pytest.raises(HeadgateError, match="there was no executor for 30s"):
        cluster.after(2)


def test_the_driver_is_asked_at_most_once_a_second() -> None:
    asked: list[float] = []
    clock = FakeClock()

    def read() -> Executors:
        asked.append(clock.monotonic())
        return Executors(at=clock.now())

    watch = ExecutorWatch(SETTINGS, read, clock)
    for _ in range(50):
        watch.look()
        clock.sleep(timedelta(milliseconds=100))
    assert len(asked) <= 5
