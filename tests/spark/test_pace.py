"""How clocks go on: what each partition brought, which one decides, and what all streams allow."""

from __future__ import annotations

from typing import Any

import pytest
from memory_flow import MemoryFlow, as_bytes
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.bridge import kernel
from headgate._kernel.memory_query import MemoryRecord
from headgate.windows import count, tumbling

# Where event time ends.
END_MS = 253_402_300_799_999
NONE = -(2**63)


class Paces:
    """The kernel's decision on clocks, called with plain values."""

    def __init__(self, spark: SparkSession) -> None:
        self._time = kernel(spark).time
        self._list = spark._jvm.java.util.ArrayList  # type: ignore[union-attr]
        self._map = spark._jvm.java.util.TreeMap  # type: ignore[union-attr]

    def stream(
        self,
        max_ms: int,
        *partitions: tuple[int, bool, int],
        delay: int = 0,
        idle: int = -1,
        quiet: int = 0,
    ) -> Any:
        """Return a stream whose clock shows a time.

        Args:
            partitions: Of each the greatest event time, whether it holds no record, and for how
                long it was quiet; they are called 0, 1, …
        """
        found = self._map()
        for number, each in enumerate(partitions):
            found.put(str(number), self._time.Pace.Partition(*each))
        return self._time.Pace.Stream(max_ms, delay, idle, quiet, found)

    def next(
        self, now: tuple[int, int], own: Any, *others: Any, ends: bool = False, nudge: bool = False
    ) -> tuple[int, int]:
        """Return what a clock shows next: its time, and by how much it is nudged."""
        reading = self._time.Pace.next(
            self._time.Reading(*now), own, self._all(own, *others), ends, nudge
        )
        return reading.max(), reading.nudged()

    def is_nudge_due(self, every: int, stood: int, nudges: int) -> bool:
        """Tell whether a flow whose time stands still is due for a look at its timers."""
        return bool(self._time.Pace.isNudgeDue(every, stood, nudges))

    def _all(self, *streams: Any) -> Any:
        found = self._list()
        for each in streams:
            found.add(each)
        return found


@pytest.fixture
def paces(spark: SparkSession) -> Paces:
    return Paces(spark)


def test_a_clock_follows_its_stream_and_never_goes_back(paces: Paces) -> None:
    assert paces.next((NONE, 0), paces.stream(NONE)) == (NONE, 0)
    assert paces.next((NONE, 0), paces.stream(50)) == (50, 0)
    assert paces.next((50, 1), paces.stream(60)) == (60, 0)
    assert paces.next((50, 1), paces.stream(40)) == (50, 1)


@pytest.mark.parametrize(
    ("shown", "partitions", "reached", "slowest"),
    [
        # The slowest partition decides, and one that has something to read and brought nothing.
        (NONE, [(500, False, 0), (20, False, 29)], 20, "1"),
        (NONE, [(500, False, 0), (NONE, False, 0)], NONE, "1"),
        (20, [(500, False, 0), (NONE, False, 0)], 20, "1"),
        # One that is found later holds the clock where it is, and the clock does not go back.
        (400, [(500, False, 0), (20, False, 0)], 400, "1"),
        # What is idle, or empty since ever, is left out; what was emptied since is not.
        (20, [(500, False, 0), (20, False, 30)], 500, "0"),
        (NONE, [(500, False, 0), (NONE, True, 0)], 500, "0"),
        (NONE, [(500, False, 0), (20, True, 0)], 20, "1"),
        # Where all are idle there is nothing to wait for.
        (20, [(500, False, 30), (20, False, 30)], 500, None),
        (NONE, [(NONE, True, 0)], NONE, None),
        # Before the first look nothing is known of partitions.
        (20, [], 20, None),
    ],
)
def test_the_slowest_partition_that_is_not_idle_decides(
    paces: Paces,
    shown: int,
    partitions: list[tuple[int, bool, int]],
    reached: int,
    slowest: str | None,
) -> None:
    own = paces.stream(shown, *partitions, idle=30)
    assert paces.next((shown, 0), own) == (reached, 0)
    assert own.slowestPartition() == slowest


def test_without_a_span_no_partition_that_holds_records_is_idle(paces: Paces) -> None:
    own = paces.stream(NONE, (500, False, 0), (20, False, 10**9), (NONE, True, 0))
    assert paces.next((NONE, 0), own) == (20, 0)


def test_an_idle_stream_keeps_abreast_of_the_slowest_that_is_not(paces: Paces) -> None:
    idle = paces.stream(10, delay=5, idle=30, quiet=30)
    slow, fast = paces.stream(100, delay=20), paces.stream(300, delay=1)
    assert paces.next((10, 0), idle, slow, fast) == (85, 0)
    assert paces.next((NONE, 0), paces.stream(NONE, idle=30, quiet=31), slow) == (80, 0)


def test_a_stream_is_idle_only_after_its_span_and_if_it_has_one(paces: Paces) -> None:
    others = [paces.stream(100)]
    for own in (paces.stream(10, idle=30, quiet=29), paces.stream(10, quiet=10**6)):
        assert paces.next((10, 0), own, *others) == (10, 0)


def test_nothing_moves_where_a_stream_may_still_bring_anything(paces: Paces) -> None:
    idle = paces.stream(10, idle=30, quiet=30)
    assert paces.next((10, 0), idle, paces.stream(NONE), paces.stream(100)) == (10, 0)


def test_where_all_streams_are_idle_the_fastest_decides(paces: Paces) -> None:
    empty = paces.stream(NONE, delay=5, idle=30, quiet=30)
    slow = paces.stream(10, delay=0, idle=30, quiet=40)
    fast = paces.stream(100, delay=20, idle=30, quiet=30)
    assert paces.next((NONE, 0), empty, slow, fast) == (85, 0)
    assert paces.next((10, 0), slow, empty, fast) == (80, 0)
    assert paces.next((100, 0), fast, empty, slow) == (100, 0)
    assert paces.next((NONE, 0), empty, empty) == (NONE, 0)


def test_an_idle_stream_never_goes_back(paces: Paces) -> None:
    assert paces.next((90, 0), paces.stream(90, idle=1, quiet=2), paces.stream(50)) == (90, 0)


def test_the_end_of_time_is_the_same_for_every_delay(paces: Paces) -> None:
    end, _ = paces.next((10, 0), paces.stream(10, delay=300), ends=True)
    assert end - 300 == END_MS
    assert paces.next((NONE, 0), paces.stream(NONE), ends=True) == (END_MS, 0)
    assert paces.next((end, 0), paces.stream(10, delay=300), ends=True) == (end, 0)


def test_a_nudged_clock_never_goes_back_and_never_far_ahead(paces: Paces) -> None:
    assert paces.next((50, 0), paces.stream(50), nudge=True) == (50, 1)
    assert paces.next((50, 1), paces.stream(50), nudge=True) == (50, 2)
    assert paces.next((50, 1000), paces.stream(50), nudge=True) == (50, 1000)
    assert paces.next((50, 3), paces.stream(51), nudge=True) == (51, 2)
    assert paces.next((50, 3), paces.stream(60), nudge=True) == (60, 0)
    assert paces.next((NONE, 0), paces.stream(NONE), nudge=True) == (NONE, 0)
    assert paces.next((END_MS, 0), paces.stream(50), nudge=True) == (END_MS, 0)


def test_a_nudge_is_due_where_time_stood_still_and_twice_if_nothing_comes_in(paces: Paces) -> None:
    assert paces.is_nudge_due(10, 10, 0)
    assert paces.is_nudge_due(10, 10, 1)
    assert not paces.is_nudge_due(10, 10, 2)
    assert not paces.is_nudge_due(10, 9, 0)
    assert not paces.is_nudge_due(-1, 10, 0)


# Small numbers would reach Java as integers, and times are longs.
_LONG = 2**40


def _told(time: int) -> int:
    return time if time == NONE else time - _LONG


class Partitions:
    """The kernel's memory of a stream's partitions, called with plain values."""

    def __init__(self, spark: SparkSession) -> None:
        self._kernel = kernel(spark)
        self._map = spark._jvm.java.util.HashMap  # type: ignore[union-attr]
        self._times = self._kernel.time.PartitionTimes()

    def begin(self, **times: int) -> None:
        """Take over what was logged."""
        self._times.begin(self._mapped({name: _LONG + time for name, time in times.items()}))

    def look(self, second: float, **progress: str) -> dict[str, tuple[int, int]]:
        """Look at the partitions, and return time and quiet seconds of each."""
        found = self._mapped(
            {
                name: self._kernel.gate.Partitioned.Progress.valueOf(each)
                for name, each in progress.items()
            }
        )
        self._times.looked(self._kernel.gate.Gatekeeper.Look(round(second * 10**9), found))
        known = self._times.partitions()
        return {
            name: (_told(known.get(name).max()), known.get(name).quiet() // 1000)
            for name in known.keySet().toArray()
        }

    def decoded(self, second: float, **times: int) -> None:
        """Take in what a batch brought."""
        brought = {name: _LONG + time for name, time in times.items()}
        self._times.decoded(self._mapped(brought), round(second * 10**9))

    def times(self) -> dict[str, int]:
        """Return what is logged."""
        return {name: _told(time) for name, time in self._times.times().items()}

    def _mapped(self, values: dict[str, Any]) -> Any:
        found = self._map()
        for name, each in values.items():
            found.put(name, each)
        return found


def test_a_partition_is_quiet_from_when_it_was_read_to_its_end(spark: SparkSession) -> None:
    all_ = Partitions(spark)
    assert all_.look(100, a="READING", b="UNREAD") == {"a": (NONE, 0), "b": (NONE, 0)}
    all_.decoded(140, a=7, b=8)
    # A batch that takes longer than partitions may be quiet makes none of them idle.
    assert all_.look(141, a="READ", b="UNREAD") == {"a": (7, 1), "b": (8, 0)}
    assert all_.look(150, a="READ", b="READ") == {"a": (7, 10), "b": (8, 9)}
    # Nor does a pause: what waits to be read is about to bring events.
    assert all_.look(500, a="READING", b="READ") == {"a": (7, 0), "b": (8, 359)}


def test_a_partition_that_brings_no_event_is_quiet_however_often_it_is_read(
    spark: SparkSession,
) -> None:
    all_ = Partitions(spark)
    all_.look(100, a="READING")
    all_.decoded(101)
    assert all_.look(130, a="READING") == {"a": (NONE, 30)}
    # A backlog may hold events yet.
    assert all_.look(131, a="UNREAD") == {"a": (NONE, 0)}


def test_partitions_that_are_gone_or_made_anew_are_forgotten(spark: SparkSession) -> None:
    all_ = Partitions(spark)
    all_.begin(a=5, b=6, c=7)
    assert all_.times() == {"a": 5, "b": 6, "c": 7}
    assert all_.look(100, a="READ", b="NEW") == {"a": (5, 0), "b": (NONE, 0)}
    assert all_.times() == {"a": 5}


def test_a_batch_that_is_repeated_after_a_crash_keeps_what_it_brought(spark: SparkSession) -> None:
    all_ = Partitions(spark)
    all_.decoded(99, a=9)
    all_.begin(a=5, b=6)
    assert all_.times() == {"a": 9, "b": 6}


def test_a_task_tells_the_greatest_time_of_each_partition_it_reads(spark: SparkSession) -> None:
    flow = Flow("timed")
    stream = flow.stream("in", "at BIGINT", event_time="at")
    stream.window("all", tumbling("1m")).aggregate(n=count()).updates.to("out")
    memory = MemoryFlow(spark, flow)
    places = [("a", 0, 70), ("a", 1, 20), ("b", 0, 5), ("a", 0, 60), ("b", 0, 6), ("a", 11, 1)]
    memory.batch(
        MemoryRecord("in", as_bytes({"at": at}), topic=topic, partition=number)
        for topic, number, at in places
    )
    assert memory.times("in") == {"a-0": 70, "a-1": 20, "b-0": 6, "a-11": 1}
    assert memory.times("in") == {}
