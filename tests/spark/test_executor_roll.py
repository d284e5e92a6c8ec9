"""The list of executors that a driver keeps, from what Spark's listeners are told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

_MOST_LOST = 50


class Roll:
    """A list of its own, fed by events such as Spark's."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._scheduler = jvm.org.apache.spark.scheduler
        self._no_links = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._roll = jvm.io.headgate.kernel.vitals.ExecutorRoll()

    def add(self, executor: str, *, at: int) -> None:
        info = self._scheduler.cluster.ExecutorInfo("10.0.0.7", 2, self._no_links)
        self._roll.onExecutorAdded(self._scheduler.SparkListenerExecutorAdded(at, executor, info))

    def remove(self, executor: str, *, at: int) -> None:
        event = self._scheduler.SparkListenerExecutorRemoved(at, executor, f"ended at {at}")
        self._roll.onExecutorRemoved(event)

    def report(self, executor: str, used: int) -> None:
        self._roll.report(json.dumps({"executor": executor, "used": used}))

    def told(self) -> tuple[int, list[dict[str, Any]]]:
        content = json.loads(self._roll.told())
        return content["lost"], content["executors"]


@pytest.fixture
def roll(spark: SparkSession) -> Roll:
    return Roll(spark)


def test_a_lost_executor_stays_and_its_id_may_be_given_again(roll: Roll) -> None:
    # It may report before Spark says that it is there.
    roll.report("0", 1)
    roll.add("0", at=10)
    assert [each["vitals"]["used"] for each in roll.told()[1]] == [1]
    roll.report("0", 2)
    roll.remove("0", at=20)
    # Spark may say it twice.
    roll.remove("0", at=21)
    # Spark has given it up, and it is alive.
    roll.report("0", 3)
    roll.add("0", at=30)
    lost, (first, second) = roll.told()
    assert lost == 1
    assert (first["since"], first["lost_at"], first["reason"]) == (10, 20, "ended at 20")
    assert first["vitals"]["used"] == 2
    assert (second["since"], second["slots"], second["host"]) == (30, 2, "10.0.0.7")
    assert "lost_at" not in second
    assert "vitals" not in second


def test_the_oldest_of_many_lost_executors_are_counted_only(roll: Roll) -> None:
    roll.add("there", at=1)
    for number in range(_MOST_LOST + 5):
        # Half of them have the id of one before.
        roll.add(str(number // 2), at=number + 2)
        roll.remove(str(number // 2), at=number + 3)
    lost, executors = roll.told()
    assert lost == _MOST_LOST + 5
    assert [each["id"] for each in executors if "lost_at" not in each] == ["there"]
    assert len(executors) == _MOST_LOST + 1


def test_reports_of_executors_that_never_come_are_few(roll: Roll) -> None:
    for number in range(2 * _MOST_LOST):
        roll.report(str(number), number)
    for number in (0, _MOST_LOST - 1, 2 * _MOST_LOST - 1):
        roll.add(str(number), at=number + 1)
    assert ["vitals" in each for each in roll.told()[1]] == [False, False, True]


def test_a_driver_without_a_list_has_no_executors(roll: Roll) -> None:
    assert roll.told() == (0, [])
