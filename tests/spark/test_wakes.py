"""The source that wakes process operators: a batch when a timer is due, and none without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate._kernel.bridge import WAKE_SOURCE, Gate, kernel
from headgate.checkpoints import sparklog
from headgate.engine.plan.wakes import WAKES

NEVER = 2**63 - 1
BUCKETS = 128
PATIENCE = 60.0


class Waking:
    """A query of wakes alone, whose timers the test reports in place of tasks."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._runs = 0
        self.checkpoint = folder / "checkpoint"
        self.at_once = False

    def start(self, *, known: bool = True, addresses: str = "3,7", hold: bool = False) -> None:
        """Start the query, or continue it with nothing known of its timers."""
        self.batches: list[list[tuple[int, int]]] = []
        self.moments: list[float] = []
        self.empty = 0
        self._runs += 1
        run = f"{self._folder.name}-{self._runs}"
        self.gate = Gate(self._spark, run)
        if hold:
            self.gate.hold()
        process = kernel(self._spark).process
        self._alarms = process.Alarms.registered(self._spark._jsparkSession)
        process.WakeSource.follow(run, self._alarms)
        options = {"gate": run, "wake.addresses": addresses, "wake.known": str(known).lower()}
        wakes = self._spark.readStream.format(WAKE_SOURCE).name(WAKES).options(**options).load()
        self.query: StreamingQuery = (
            wakes.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", f"file:{self.checkpoint}")
            .start()
        )

    def report(self, moment: float, *, bucket: int = 5) -> None:
        """Report the earliest timer of a bucket, in epoch seconds."""
        self._alarms.report(3, bucket, round(moment * 1000))

    def clear(self, *, bucket: int = 5) -> None:
        """Report that a bucket has no timers."""
        self._alarms.report(3, bucket, NEVER)

    def _take(self, rows: Any, _batch: int) -> None:
        moment = time.time()
        found = rows.selectExpr("_1", "conv(hex(reverse(substr(_2, 3, 2))), 16, 10) AS address")
        woken = sorted((row[0], int(row[1])) for row in found.collect())
        if not woken:
            # Spark runs the first batch of a checkpoint whatever there is to read.
            self.empty += 1
            return
        self.moments.append(moment)
        self.batches.append(woken)
        if self.at_once:
            self.clear()

    def stop(self) -> None:
        """End the query as a job does."""
        self.gate.stop()
        until(lambda: not self.query.isActive)
        self.gate.forget()


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.02)


@pytest.fixture
def waking(spark: SparkSession, tmp_path: Path) -> Iterator[Waking]:
    """Give a query that is ended after the test."""
    made = Waking(spark, tmp_path)
    yield made
    if made.query.isActive:
        made.stop()


def test_without_timers_a_query_runs_no_batch(waking: Waking) -> None:
    waking.start()
    waking.report(time.time() + 3600)
    until(lambda: waking.empty > 0)
    time.sleep(1)
    assert (waking.batches, waking.empty) == ([], 1)


def test_a_timer_that_is_due_wakes_each_bucket_of_each_operator_once(waking: Waking) -> None:
    waking.start()
    until(lambda: waking.empty > 0)
    due = time.time() + 0.5
    waking.at_once = True
    waking.report(due)
    until(lambda: bool(waking.batches))
    time.sleep(0.5)
    assert len(waking.batches) == 1
    assert due <= waking.moments[0] < due + PATIENCE / 4
    assert waking.batches[0] == [(bucket, at) for bucket in range(BUCKETS) for at in (3, 7)]


def test_a_timer_that_stays_due_wakes_at_most_ten_times_a_second(waking: Waking) -> None:
    waking.start()
    waking.report(time.time() - 5)
    until(lambda: len(waking.batches) >= 5)
    assert waking.moments[4] - waking.moments[0] > 0.35


def test_a_query_that_goes_on_wakes_once_and_a_new_one_that_takes_over_state_too(
    waking: Waking,
) -> None:
    waking.start(known=False)
    until(lambda: bool(waking.batches))
    time.sleep(0.5)
    assert len(waking.batches) == 1
    waking.stop()
    waking.start()
    until(lambda: bool(waking.batches))
    time.sleep(0.5)
    assert len(waking.batches) == 1
    assert len(waking.batches[0]) == 2 * BUCKETS
    waking.stop()
    assert sparklog.find_last_commit(waking.checkpoint) == 1


def test_operators_without_timers_are_never_woken(waking: Waking) -> None:
    waking.start(known=False, addresses="")
    waking.report(time.time() - 5)
    until(lambda: waking.empty > 0)
    time.sleep(0.5)
    assert waking.batches == []


def test_a_held_query_is_not_woken_before_its_gate_opens(waking: Waking) -> None:
    waking.start(hold=True, known=False)
    time.sleep(0.5)
    assert (waking.batches, waking.empty) == ([], 0)
    waking.gate.open()
    until(lambda: bool(waking.batches))
