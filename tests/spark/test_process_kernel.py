"""Keyed processes do what plain Python does: batch by batch in memory, by the kernel's operator."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from memory_flow import SPARK, MemoryFlow, as_bytes
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate import Context, Flow, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate._kernel.bridge import CompiledFlow, kernel
from headgate._kernel.memory_query import MemoryRecord
from headgate.engine.plan.plan import plan_flow
from headgate.engine.user_code.functions import worker_spec
from headgate.flow.state.processes import state_schema

SCHEMA = "key STRING, what STRING, n BIGINT, at BIGINT"
WHATS = ("add", "put", "pop", "sum", "drop")


@dataclass
class Made:
    key: str
    what: str
    n: int


class Machine(KeyedProcess[Any, Made]):
    """Does what an event says, with state of each kind."""

    total: Value[int]
    items: ListOf[int]
    seen: MapOf[str, int]

    def on_event(self, event: Any, ctx: Context[Made]) -> None:
        self.total.set(self.total.get(0) + 1)
        name = str(event.n % 50)
        match event.what:
            case "add":
                self.items.append(event.n)
            case "many":
                self.items.extend(range(event.n))
                for number in range(event.n):
                    self.seen[str(number)] = number
            case "put":
                self.seen[name] = self.seen.get(name, 0) + event.n
            case "pop":
                ctx.emit(Made(ctx.key, "popped", self.seen.pop(name, -1)))
            case "sum":
                ctx.emit(Made(ctx.key, "items", sum(self.items)))
                ctx.emit(Made(ctx.key, "seen", sum(self.seen.values())))
                ctx.emit(Made(ctx.key, "tail", sum(self.items.tail(3))))
                ctx.emit(Made(ctx.key, "sizes", len(self.items) * 1000 + len(self.seen)))
            case "drop":
                self.items.clear()
                self.seen.clear()
            case "forget":
                self.items.clear()
                self.seen.clear()
                self.total.clear()
                return
            case "die":
                os._exit(9)
            case "spoil":
                self.items.append(-1)
                self.seen["spoiled"] = -1
                ctx.emit(Made(ctx.key, "spoiled", 0))
                raise ValueError("spoiled")
        ctx.emit(Made(ctx.key, "total", self.total.get(0)))


class Model:
    """The same in plain Python."""

    def __init__(self) -> None:
        self.total: dict[str, int] = defaultdict(int)
        self.items: dict[str, list[int]] = defaultdict(list)
        self.seen: dict[str, dict[str, int]] = defaultdict(dict)

    def rows(self, key: str, what: str, n: int) -> list[tuple[str, int]]:
        self.total[key] += 1
        items, seen, name = self.items[key], self.seen[key], str(n % 50)
        rows = []
        match what:
            case "add":
                items.append(n)
            case "put":
                seen[name] = seen.get(name, 0) + n
            case "pop":
                rows.append(("popped", seen.pop(name, -1)))
            case "sum":
                rows += [("items", sum(items)), ("seen", sum(seen.values()))]
                rows += [("tail", sum(items[-3:])), ("sizes", len(items) * 1000 + len(seen))]
            case "drop":
                items.clear()
                seen.clear()
        return [*rows, ("total", self.total[key])]


class Alarm(KeyedProcess[Any, Made]):
    """Registers and cancels the timers that events ask for."""

    fired: Value[int]

    def on_event(self, event: Any, ctx: Context[Made]) -> None:
        match event.what:
            case "at":
                ctx.timers.at(event.n)
            case "after":
                ctx.timers.after(f"{event.n}ms")
            case "not at":
                ctx.timers.cancel(Timer(event.n, is_event_time=True))
            case "not after":
                ctx.timers.cancel(Timer(event.n, is_event_time=False))
            case "look":
                ctx.emit(Made(ctx.key, "fired", self.fired.get(0)))

    def on_timer(self, timer: Timer, ctx: Context[Made]) -> None:
        self.fired.set(self.fired.get(0) + 1)
        ctx.emit(Made(ctx.key, "event" if timer.is_event_time else "clock", timer.ms))


class Expiring(KeyedProcess[Any, Made]):
    """Has state that expires."""

    one: Value[int] = Value(ttl="100ms")
    items: ListOf[int] = ListOf(ttl="100ms")
    seen: MapOf[str, int] = MapOf(ttl="100ms")

    def on_event(self, event: Any, ctx: Context[Made]) -> None:
        ctx.emit(Made(ctx.key, "one", self.one.get(-1)))
        ctx.emit(Made(ctx.key, "items", len(self.items)))
        ctx.emit(Made(ctx.key, "seen", len(self.seen)))
        if event.what == "put":
            self.one.set(event.n)
            self.items.append(event.n)
            self.seen[str(event.n)] = event.n


class Split(KeyedProcess[Any, Made]):
    """Emits to its outputs in turn."""

    def on_event(self, event: Any, ctx: Context[Made]) -> None:
        for number in range(event.n):
            made = Made(ctx.key, event.what, number)
            if number % 2:
                ctx.side("odd").emit(made)
            else:
                ctx.emit(made)


class Process:
    """A flow with one process, fed with events as tuples of key, what and n."""

    def __init__(
        self, spark: SparkSession, process: KeyedProcess[Any, Any], **options: Any
    ) -> None:
        self.flow = flow_of(process, **options)
        self.memory = MemoryFlow(spark, self.flow)
        self._place = 0
        self.letters: list[dict[str, Any]] = []

    def batch(
        self, *events: tuple[str, str, int], watermark: int = 0, clock: int = 0, **more: Any
    ) -> dict[str, list[tuple[str, int]]]:
        """Run a batch, and return what each key emitted, in order."""
        records = []
        for key, what, n in events:
            self._place += 1
            value = {"key": key, "what": what, "n": n, "at": 1000}
            place = self._place
            records.append(MemoryRecord("in", as_bytes(value), sequence=place, offset=place))
        rows = self.memory.batch(records, watermark=watermark, clock=clock, **more)
        self.letters += rows.pop("dead-letters", [])
        out: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for row in rows.get("out", []):
            out[row["key"]].append((row["what"], row["n"]))
        return dict(out)


def flow_of(process: KeyedProcess[Any, Any], **options: Any) -> Flow:
    flow = Flow("process")
    events = flow.stream("in", SCHEMA, event_time="at")
    events.key_by("key").process("p", process, **options).out.to("out")
    return flow


@pytest.fixture(params=[False, True], ids=["batches", "one-by-one"])
def alone(request: pytest.FixtureRequest) -> bool:
    """Return whether each row reaches the operator alone, as in real-time mode."""
    return bool(request.param)


def modelled(model: Model, events: Sequence[tuple[str, str, int]]) -> dict[str, Any]:
    """Return what plain Python makes of events, by key."""
    out: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for key, what, n in events:
        out[key] += model.rows(key, what, n)
    return dict(out)


# State.


@pytest.mark.parametrize("seed", range(4))
def test_state_is_that_of_plain_python_whatever_the_batches(spark: SparkSession, seed: int) -> None:
    drawn = random.Random(seed)
    process, model = Process(spark, Machine()), Model()
    restart = drawn.randrange(12)
    for number in range(12):
        events = [
            (f"k{drawn.randrange(8)}", drawn.choice(WHATS), drawn.randrange(1000))
            for _ in range(drawn.choice([0, 1, 7, 60]))
        ]
        if number == restart:
            process.memory.restart()
        made = process.batch(*events, seed=drawn.randrange(99), clock=number)
        assert made == modelled(model, events), f"batch {number}"


def test_rows_that_come_alone_change_the_same_state(spark: SparkSession) -> None:
    process, model = Process(spark, Machine()), Model()
    drawn = random.Random(5)
    for number in range(20):
        events = [(f"k{key}", drawn.choice(WHATS), drawn.randrange(1000)) for key in range(3)]
        assert process.batch(*events, seed=number, one_by_one=True) == modelled(model, events)


def test_the_events_of_one_key_may_fill_several_exchanges(spark: SparkSession) -> None:
    process, model = Process(spark, Machine()), Model()
    drawn = random.Random(6)
    events = [("a", drawn.choice(WHATS), number) for number in range(10_000)]
    events += [("b", "add", number) for number in range(100)]
    for part in (events[:9_500], events[9_500:]):
        assert process.batch(*part, seed=1) == modelled(model, part)


def test_lists_and_maps_of_thousands_are_read_in_pages(spark: SparkSession) -> None:
    process = Process(spark, Machine())
    many = 3_000
    process.batch(("a", "many", many), ("b", "many", 10))
    pages = len(process.memory.state().held)
    assert pages > 50
    process.memory.restart()
    assert len(process.memory.state().held) == pages
    total = sum(range(many))
    assert process.batch(("a", "put", 7), ("a", "sum", 0), ("b", "sum", 0)) == {
        "a": [
            ("total", 2),
            ("items", total),
            ("seen", total + 7),
            ("tail", 3 * many - 6),
            ("sizes", many * 1000 + many),
            ("total", 3),
        ],
        "b": [("items", 45), ("seen", 45), ("tail", 24), ("sizes", 10_010), ("total", 2)],
    }
    process.batch(("a", "forget", 0), ("b", "forget", 0))
    assert process.memory.state().held == ()


def test_large_events_fill_several_exchanges(spark: SparkSession) -> None:
    process = Process(spark, Machine())
    # An exchange has 4 MiB.
    made = process.batch(*[("a", "x" * 900_000, 1)] * 12)
    assert made == {"a": [("total", number + 1) for number in range(12)]}


# Timers.


def test_an_event_timer_fires_once_the_watermark_reaches_it(
    spark: SparkSession, alone: bool
) -> None:
    process = Process(spark, Alarm())

    def batch(*events: tuple[str, str, int], watermark: int) -> dict[str, list[tuple[str, int]]]:
        return process.batch(*events, watermark=watermark, one_by_one=alone)

    assert batch(("a", "at", 100), ("a", "at", 50), ("b", "at", 100), watermark=10) == {}
    assert batch(("a", "at", 100), watermark=49) == {}
    assert batch(watermark=50) == {"a": [("event", 50)]}
    process.memory.restart()
    assert batch(("b", "not at", 100), watermark=99) == {}
    assert batch(watermark=100) == {"a": [("event", 100)]}
    assert batch(("a", "look", 0), ("b", "look", 0), watermark=1000) == {
        "a": [("fired", 2)],
        "b": [("fired", 0)],
    }
    assert process.memory.state().timers == ()


def test_a_timer_at_or_below_the_watermark_fires_when_it_moves(
    spark: SparkSession, alone: bool
) -> None:
    process = Process(spark, Alarm())
    for watermark, events, fired in [
        (100, [("a", "at", 30), ("a", "at", 500)], []),
        (100, [], []),
        # The bucket is woken for the timer at 500: the late one must not fire along with it.
        (600, [("a", "at", 31)], [("event", 30), ("event", 500)]),
        (600, [], []),
        (601, [], [("event", 31)]),
    ]:
        made = process.batch(*events, watermark=watermark, one_by_one=alone)
        assert made.get("a", []) == fired


def test_a_processing_timer_fires_by_the_clock_in_an_idle_flow(
    spark: SparkSession, alone: bool
) -> None:
    process = Process(spark, Alarm())
    process.batch(("a", "after", 100), ("b", "after", 100), ("c", "after", 200), clock=1000)
    process.batch(("b", "not after", 1100), clock=1050, one_by_one=alone)
    process.memory.restart()
    assert process.batch(clock=1099, one_by_one=alone) == {}
    assert process.batch(clock=1100, one_by_one=alone) == {"a": [("clock", 1100)]}
    assert process.batch(("c", "look", 0), clock=1200) == {"c": [("fired", 0), ("clock", 1200)]}
    assert process.batch(clock=9000) == {}


def test_timers_of_a_key_fire_in_order_over_many_exchanges(spark: SparkSession) -> None:
    process = Process(spark, Alarm())
    times = list(range(100, 9_100))
    shuffled = random.Random(1).sample(times, len(times))
    process.batch(*(("a", "at", time) for time in shuffled), watermark=10)
    process.batch(*(("b", "after", time) for time in shuffled), watermark=10)
    assert process.batch(watermark=100, clock=99) == {"a": [("event", 100)]}
    assert process.batch(watermark=10_000, clock=10_000) == {
        "a": [("event", time) for time in times[1:]],
        "b": [("clock", time) for time in times],
    }


@pytest.mark.parametrize("seed", range(3))
def test_timers_are_those_of_plain_python(spark: SparkSession, seed: int) -> None:
    drawn = random.Random(seed)
    process = Process(spark, Alarm())
    pending: dict[str, set[tuple[str, int]]] = defaultdict(set)
    watermark = clock = 1
    restart = drawn.randrange(30)
    for number in range(30):
        moved, watermark = watermark, watermark + drawn.choice([0, 0, 5, 40])
        clock += drawn.choice([0, 0, 5, 40])
        if number == restart:
            process.memory.restart()
            # A query that takes over state has seen no watermark yet.
            moved = 0
        wanted: dict[str, list[tuple[str, int]]] = defaultdict(list)
        # What is due in this batch is known before its events, which may only cancel it.
        due = {
            key: [
                (kind, time) for kind, time in times if time <= (clock, watermark)[kind == "event"]
            ]
            for key, times in pending.items()
        }
        events = []
        for _ in range(drawn.randrange(8)):
            key, what = f"k{drawn.randrange(5)}", drawn.choice(["at", "after", "not at"])
            near = watermark + drawn.randrange(-20, 60)
            n = drawn.randrange(1, 60) if what == "after" else near
            timer = ("clock", clock + n) if what == "after" else ("event", n)
            if timer in due.get(key, []) or (what == "not at" and n <= watermark):
                continue
            events.append((key, what, n))
            (pending[key].discard if what == "not at" else pending[key].add)(timer)
        for key, timers in due.items():
            for kind in ("clock", "event"):
                if kind == "event" and watermark == moved:
                    continue
                fired = sorted(timer for timer in timers if timer[0] == kind)
                wanted[key] += fired
                pending[key] -= set(fired)
        made = process.batch(*events, watermark=watermark, clock=clock, seed=number)
        assert made == {key: rows for key, rows in wanted.items() if rows}, f"batch {number}"


def test_a_timer_that_an_event_of_the_same_batch_cancels_does_not_fire(
    spark: SparkSession,
) -> None:
    process = Process(spark, Alarm())
    process.batch(("a", "at", 100), ("a", "after", 100), clock=1000)
    events = [("a", "not at", 100), ("a", "not after", 1100)]
    # The first exchange cancels what the last one would fire.
    events += [("a", "none", 0)] * 5_000
    assert process.batch(*events, watermark=200, clock=2000) == {}
    assert process.batch(watermark=201, clock=3000) == {}


# Time to live.


def test_expired_state_is_absent_and_then_removed(spark: SparkSession) -> None:
    process = Process(spark, Expiring())
    empty = [("one", -1), ("items", 0), ("seen", 0)]
    assert process.batch(("a", "put", 1), clock=1000) == {"a": empty}
    process.memory.restart()
    assert process.batch(("a", "put", 2), clock=1099) == {
        "a": [("one", 1), ("items", 1), ("seen", 1)]
    }
    assert process.batch(("a", "look", 0), clock=1100) == {
        "a": [("one", 2), ("items", 1), ("seen", 1)]
    }
    assert process.batch(("a", "look", 0), clock=1199) == {"a": empty}
    assert process.batch(("a", "look", 0), clock=5000) == {"a": empty}
    assert process.memory.state().held == ()


# Outputs and failures.


def test_rows_of_each_output_keep_their_order(spark: SparkSession) -> None:
    flow = Flow("outputs")
    made = (
        flow.stream("in", "key STRING, what STRING, n BIGINT").key_by("key").process("p", Split())
    )
    made.out.to("even")
    made.side("odd").to("odd")
    rows = MemoryFlow(spark, flow).feed(
        "in", {"key": "a", "what": "x", "n": 5}, {"key": "a", "what": "y", "n": 4}
    )
    shown = {name: [(row["what"], row["n"]) for row in rows[name]] for name in ("even", "odd")}
    assert shown == {
        "even": [("x", 0), ("x", 2), ("x", 4), ("y", 0), ("y", 2)],
        "odd": [("x", 1), ("x", 3), ("y", 1), ("y", 3)],
    }


def test_an_event_that_fails_leaves_no_trace_but_its_dead_letter(spark: SparkSession) -> None:
    process = Process(spark, Machine(), on_error="dead-letter")
    events = [("a", "add", 5), ("a", "spoil", 0), ("a", "sum", 0), ("b", "spoil", 0)]
    assert process.batch(*events) == {
        "a": [("total", 1), ("items", 5), ("seen", 0), ("tail", 5), ("sizes", 1000), ("total", 2)]
    }
    assert sorted((letter["key"], letter["code"]) for letter in process.letters) == [
        ("a", "FUNCTION_FAILED"),
        ("b", "FUNCTION_FAILED"),
    ]
    assert all("ValueError: spoiled" in letter["reason"] for letter in process.letters)


def test_a_failure_names_the_process(spark: SparkSession) -> None:
    process = Process(spark, Machine())
    for what, words in (
        ("spoil", "FUNCTION_FAILED: process 'p' failed on "),
        ("die", "PYTHON_WORKER_DIED: the worker of process 'p' ended: exit code 9"),
    ):
        with pytest.raises(Py4JJavaError, match=words):
            process.batch(("a", what, 0))
    assert process.batch(("b", "add", 1)) == {"b": [("total", 1)]}


# Versions.


class Older(KeyedProcess[Any, Made]):
    """An earlier version of a process."""

    items: ListOf[int]
    total: Value[int]

    def on_event(self, event: Any, ctx: Context[Made]) -> None:  # noqa: ARG002
        self.items.append(event.n)
        self.total.set(self.total.get(0) + 1)


class Newer(KeyedProcess[Any, Made]):
    """The next version: a list and a map more, before those that were there."""

    names: ListOf[str]
    seen: MapOf[str, int]
    items: ListOf[int]
    total: Value[int]

    def on_event(self, event: Any, ctx: Context[Made]) -> None:
        self.names.append(event.what)
        self.seen[event.what] = event.n
        self.items.append(event.n)
        self.total.set(self.total.get(0) + 1)
        ctx.emit(Made(ctx.key, "items", sum(self.items)))
        ctx.emit(Made(ctx.key, "names", len(self.names) * 1000 + len(self.seen)))
        ctx.emit(Made(ctx.key, "total", self.total.get(0)))


def test_a_later_version_reads_the_state_of_an_earlier_one(spark: SparkSession) -> None:
    process = Process(spark, Older())
    process.batch(*(("a", "x", number) for number in range(200)))
    old, new = (flow.graph() for flow in (process.flow, flow_of(Newer())))
    history = {"p": [state_schema(graph.node("p")) for graph in (old, new)]}  # type: ignore[arg-type]
    plan = plan_flow(new, history=history, max_record=1024, job="process")
    spec = {**plan.spec, "worker": worker_spec(SPARK, None)}
    query = process.memory._tester
    query._tester = kernel(spark).testing.FlowTester(
        CompiledFlow.compile(spark, spec).plan, query._tester
    )
    for number in range(2):
        assert process.batch(("a", "y", 1000)) == {
            "a": [
                ("items", sum(range(200)) + 1000 * (number + 1)),
                ("names", 1000 * (number + 1) + 1),
                ("total", 201 + number),
            ]
        }
