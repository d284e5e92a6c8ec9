"""Rows that a batch leaves to the next: a dictionary, and only for the task that follows."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate._kernel.bridge import kernel

PLENTY = 1 << 20
# What an entry counts beside its bytes; see RowCache.
OVERHEAD = 64
# How many batches one that is full stays as it is.
LASTS = 256

# Keys that differ in their last byte, their length or nothing.
_keys = st.binary(max_size=3) | st.sampled_from([b"\0" * n for n in range(6)])
_changes = st.lists(st.tuples(_keys, st.binary(max_size=8)), max_size=60)


class Caches:
    """The kernel's caches, and tasks of a query to use them in."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._kernel = kernel(spark)
        self.query, self.run = uuid.uuid4(), uuid.uuid4()

    def new(self, most: int) -> Any:
        return self._kernel.operators.RowCache(most)

    def task(self) -> Any:
        """Return what a running task is known by."""
        return getattr(getattr(self._jvm.org.apache.spark, "TaskContext$"), "MODULE$").empty()

    def take(
        self, batch: int, task: Any, *, operator: int = 0, run: uuid.UUID | None = None
    ) -> Any:
        """Return what a task begins with."""
        streaming = self._jvm.org.apache.spark.sql.execution.streaming
        of = self._jvm.java.util.UUID.fromString
        place = streaming.operators.stateful.transformwithstate.statefulprocessor
        info = place.QueryInfoImpl(of(str(self.query)), of(str(run or self.run)), batch)
        return self._kernel.operators.RowCache.of(info, operator, task)

    def leave(self, batch: int) -> None:
        """Run a task that knows one row, and let it end well."""
        task = self.task()
        self.take(batch, task).put(b"key", b"row")
        self.end(task)

    def end(self, task: Any) -> None:
        task.markTaskCompleted(self._none())

    def fail(self, task: Any) -> None:
        error = self._jvm.java.lang.RuntimeException("tried")
        task.markTaskFailed(error)
        task.markTaskCompleted(self._jvm.scala.Some(error))

    def _none(self) -> Any:
        return getattr(getattr(self._jvm.scala, "None$"), "MODULE$")


@pytest.fixture
def caches(spark: SparkSession) -> Caches:
    """Give caches of a query that has not run yet."""
    return Caches(spark)


@given(changes=_changes)
def test_rows_are_found_as_in_a_dictionary(
    caches: Caches, changes: list[tuple[bytes, bytes]]
) -> None:
    rows, model = caches.new(PLENTY), dict[bytes, bytes]()
    for key, row in changes:
        assert rows.get(key) == model.get(key)
        rows.put(key, row)
        model[key] = row
    assert {key: bytes(rows.get(key)) for key in model} == model


def test_many_rows_are_all_found(caches: Caches) -> None:
    rows = caches.new(PLENTY)
    for number in range(5_000):
        rows.put(str(number).encode(), b"%d" % -number)
    assert all(rows.get(str(n).encode()) == b"%d" % -n for n in range(5_000))
    assert rows.get(b"5000") is None


def test_what_is_full_takes_no_more_and_starts_over_later(caches: Caches) -> None:
    rows = caches.new(3 * (OVERHEAD + 8))
    for key in (b"a", b"b", b"c"):
        rows.put(key, b"1234567")
    rows.put(b"d", b"1234567")
    assert [rows.get(key) for key in (b"a", b"c", b"d")] == [b"1234567", b"1234567", None]
    rows.put(b"a", b"7654321")
    assert rows.get(b"a") == b"7654321"
    for _ in range(LASTS - 1):
        rows.begin()
    assert rows.get(b"a") == b"7654321"
    rows.begin()
    assert rows.get(b"a") is None
    rows.put(b"d", b"1234567")
    assert rows.get(b"d") == b"1234567"


def test_rows_that_outgrow_it_are_never_the_old_ones(caches: Caches) -> None:
    rows = caches.new(2 * (OVERHEAD + 8))
    for key in (b"a", b"b"):
        rows.put(key, b"1234567")
    rows.put(b"a", b"12345678")
    assert rows.get(b"a") is None
    rows.put(b"a", b"12345678")
    assert rows.get(b"a") == b"12345678"


def test_the_next_batch_gets_what_a_task_leaves(caches: Caches) -> None:
    caches.leave(7)
    assert caches.take(8, caches.task()).get(b"key") == b"row"


def test_no_other_task_gets_it(caches: Caches) -> None:
    for batch in (6, 7, 9):
        caches.leave(7)
        assert caches.take(batch, caches.task()).get(b"key") is None
    caches.leave(7)
    assert caches.take(8, caches.task(), run=uuid.uuid4()).get(b"key") is None
    caches.leave(7)
    assert caches.take(8, caches.task(), operator=1).get(b"key") is None


def test_two_attempts_do_not_share_it(caches: Caches) -> None:
    caches.leave(7)
    first, second = caches.take(8, caches.task()), caches.take(8, caches.task())
    assert first.get(b"key") == b"row"
    assert second.get(b"key") is None


def test_a_task_that_failed_leaves_nothing(caches: Caches) -> None:
    caches.leave(7)
    failed = caches.task()
    caches.take(8, failed).put(b"key", b"never committed")
    caches.fail(failed)
    assert caches.take(9, caches.task()).get(b"key") is None


def test_a_task_that_was_killed_leaves_nothing(caches: Caches) -> None:
    caches.leave(7)
    killed = caches.task()
    caches.take(8, killed).put(b"key", b"never committed")
    killed.markInterrupted("tried")
    caches.end(killed)
    assert caches.take(9, caches.task()).get(b"key") is None
