"""Keyed processes with what is larger, later or odder than usual, and those that die."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from test_process_kernel import Made, Process

from headgate import Context, KeyedProcess, Timer, Value

DIES, FAILS, AGAIN = 77, 78, 79


class Odd(Exception):  # noqa: N818 - the worst of all
    """Can be neither shown nor pickled."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __reduce__(self) -> str:
        raise RuntimeError("no")


class Extreme(KeyedProcess[Any, Made]):
    """Does what an event says, as badly as can be."""

    big: Value[bytes]
    events: Value[int]

    def __init__(self) -> None:
        self.seen: list[bytes | None] = []

    def on_event(self, event: Any, ctx: Context[Made]) -> None:
        self.events.set(self.events.get(0) + 1)
        match event.what:
            case "big":
                self.big.set(b"x" * event.n)
            case "objects":
                self.seen.append(self.big.get())
                ctx.emit(Made(ctx.key, "objects", len({id(each) for each in self.seen})))
            case "rows":
                for number in range(event.n):
                    ctx.emit(Made(ctx.key, "row", number))
            case "odd":
                raise Odd
            case "leave":
                sys.exit(4)
            case "fork":
                child = os.fork()
                if child:
                    os.waitpid(child, 0)
            case "at":
                ctx.timers.at(event.n)
            case "after":
                ctx.timers.after("0s")
            case "ends":
                ctx.timers.at(datetime.min)
                ctx.timers.at(datetime.max)
        ctx.emit(Made(ctx.key, "events", self.events.get(0)))

    def on_timer(self, timer: Timer, ctx: Context[Made]) -> None:
        ctx.emit(Made(ctx.key, "timer", timer.ms))
        if timer.ms == DIES:
            os._exit(5)
        if timer.ms == FAILS:
            raise ValueError("unlucky")
        if timer.ms == AGAIN:
            ctx.timers.at(AGAIN)
        if not timer.is_event_time:
            ctx.timers.after("0s")


def test_a_value_of_20_mb_is_sent_once_for_all_events_of_its_key(spark: SparkSession) -> None:
    process = Process(spark, Extreme())
    process.batch(("a", "big", 20_000_000))
    made = process.batch(*[("a", "objects", 0)] * 10)
    # Each exchange would make another object of the value.
    assert [n for what, n in made["a"] if what == "objects"] == [1] * 10


def test_an_event_may_give_100_000_rows(spark: SparkSession) -> None:
    many = 100_000
    made = Process(spark, Extreme()).batch(("a", "rows", many))
    assert made["a"] == [*(("row", number) for number in range(many)), ("events", 1)]


def test_keys_may_be_any_text(spark: SparkSession) -> None:
    keys = ["k" * 100_000, "\0", "a\0b", "é漢😀", "", " ", '"', "\\", "[1,2]", "null", "\u2028"]
    process = Process(spark, Extreme())
    assert process.batch(*[(key, "at", 50) for key in keys]) == {
        key: [("events", 1)] for key in keys
    }
    process.memory.restart()
    assert process.batch(watermark=50) == {key: [("timer", 50)] for key in keys}


def test_timers_may_be_in_the_years_1_and_9999(spark: SparkSession) -> None:
    process = Process(spark, Extreme())
    process.batch(("a", "ends", 0), watermark=1_000)
    assert process.batch(watermark=1_001) == {"a": [("timer", -62_135_596_800_000)]}
    last = 253_402_300_799_999
    assert process.batch(watermark=last - 1) == {}
    assert process.batch(watermark=last) == {"a": [("timer", last)]}


def test_what_the_last_batch_of_event_time_sets_fires_in_it(spark: SparkSession) -> None:
    end = 253_402_300_799_999
    process = Process(spark, Extreme())
    process.batch(("a", "at", 60), watermark=40)
    # A timer that sets itself again does not fire for ever.
    made = process.batch(("a", "at", 50), ("b", "at", AGAIN), watermark=end)
    assert made == {
        "a": [("events", 2), ("timer", 50), ("timer", 60)],
        "b": [("events", 1), ("timer", AGAIN)],
    }
    assert process.batch(watermark=end) == {}


def test_timers_that_set_themselves_again_fire_once_in_a_batch(spark: SparkSession) -> None:
    process = Process(spark, Extreme())
    process.batch(("a", "at", AGAIN), ("b", "after", 0), clock=5)
    for clock in (6, 7):
        assert process.batch(watermark=80 + clock, clock=clock) == {
            "a": [("timer", AGAIN)],
            "b": [("timer", clock - 1)],
        }
    assert process.batch(watermark=87, clock=7) == {"b": [("timer", 7)]}


@pytest.mark.parametrize("on_error", ["fail", "dead-letter"])
def test_a_worker_that_dies_in_a_timer_fails_the_task(spark: SparkSession, on_error: str) -> None:
    process = Process(spark, Extreme(), on_error=on_error)
    process.batch(("a", "at", DIES))
    with pytest.raises(Py4JJavaError, match=r"worker of process 'p' ended: exit code 5"):
        process.batch(watermark=DIES)


@pytest.mark.parametrize("on_error", ["fail", "dead-letter"])
def test_a_process_that_exits_fails_the_task(spark: SparkSession, on_error: str) -> None:
    process = Process(spark, Extreme(), on_error=on_error)
    with pytest.raises(Py4JJavaError, match="raised SystemExit: 4"):
        process.batch(("a", "leave", 0))
    assert process.batch(("a", "", 0)) == {"a": [("events", 1)]}


def test_a_failing_timer_and_an_odd_exception_are_dead_letters(spark: SparkSession) -> None:
    process = Process(spark, Extreme(), on_error="dead-letter")
    assert process.batch(("a", "at", FAILS), ("b", "odd", 0), ("a", "", 0)) == {
        "a": [("events", 1), ("events", 2)]
    }
    assert process.batch(watermark=FAILS) == {}
    odd, failed = process.letters
    assert odd["reason"].startswith("Odd (test_process_extremes.py:")
    assert (failed["key"], failed["offset"], failed["raw"]) == ("a", FAILS, None)
    assert failed["reason"].startswith("ValueError: unlucky")


def test_a_process_that_forks_gives_its_rows_once(spark: SparkSession) -> None:
    process = Process(spark, Extreme())
    for number in range(1, 4):
        assert process.batch(("a", "fork", 0)) == {"a": [("events", number)]}
