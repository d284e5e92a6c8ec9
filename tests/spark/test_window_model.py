"""Windows and dedupe do what plain Python does: property tests, batch by batch in memory."""

from __future__ import annotations

import random
import struct
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from bench import bag
from hypothesis import given, note, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow, as_bytes, keys_of_one_bucket
from pyspark.sql import SparkSession
from window_reference import Batch, DedupeModel, Event, Shape, WindowModel
from window_runs import SCHEMA, aggregated, as_row, to_ms

from examples import examples
from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord, MemoryState
from headgate.flow.operators.windowing import Trigger, Windows
from headgate.windows import (
    count,
    every_event_time,
    every_events,
    every_processing_time,
    session,
    sliding,
    tumbling,
)
from headgate.windows import sum as total

SEEDS = st.integers(0, 2**31)
# Partitions are read side by side, so that the order of places is not the order of arrival.
PLACE = 1_000_000
FAR = 10**15
DEDUPED = ("unique", "repeated", "late")
# How often within the span dedupe looks for times to forget.
LOOKS = 4


def ms(span: int) -> timedelta:
    """Return a span of so many milliseconds."""
    return timedelta(milliseconds=span)


def windows(shape: Shape) -> Windows:
    """Return how a shape's events are cut up."""
    if not shape.every:
        return session(gap=ms(shape.size))
    if shape.every == shape.size:
        return tumbling(ms(shape.size))
    return sliding(ms(shape.size), every=ms(shape.every))


def flow_of(shape: Shape) -> Flow:
    """Return a flow with one window operator."""
    early: list[Trigger] = []
    early += [every_events(shape.early_n)] if shape.early_n else []
    early += [every_event_time(ms(shape.early_ms))] if shape.early_ms else []
    early += [every_processing_time(ms(shape.early_clock))] if shape.early_clock else []
    flow = Flow("model")
    events = flow.stream("events", SCHEMA, event_time="at")
    cut = (events.key_by("key") if shape.keyed else events).window(
        "w", windows(shape), allowed_lateness=ms(shape.lateness), early=early
    )
    made = cut.aggregate(**aggregated())
    made.updates.to("updates")
    made.late.select("n").to("late")
    return flow


def record(event: Event) -> MemoryRecord:
    """Return an event as it stands in its partition."""
    partition, offset = divmod(event.n, PLACE)
    return MemoryRecord(
        "events", as_bytes(asdict(event)), sequence=offset, partition=partition, offset=offset
    )


@st.composite
def batches(draw: st.DrawFn, *, keys: int = 2, kinds: int = 3) -> list[Batch]:
    """Draw batches whose watermark and clock do not go back; the last one ends all windows."""
    base = draw(st.sampled_from([0, 1_757_000_000_000]))
    offsets: defaultdict[int, int] = defaultdict(int)
    watermark, clock, drawn = 0, 0, []
    event = st.builds(
        Event,
        n=st.integers(0, 1),
        key=st.integers(0, keys - 1).map(str),
        at=st.integers(0, 60).map(lambda at: base + at),
        v=st.none() | st.sampled_from([0, 7, -3, 2**62]),
        x=st.none() | st.sampled_from([0.25, -1.5]),
        s=st.none() | st.sampled_from(["", "a", "é", "😀", "￿"]),
        by=st.integers(0, kinds - 1).map(str),
    )
    for _ in range(draw(st.integers(1, 6))):
        events = []
        for each in draw(st.lists(event, max_size=8)):
            offsets[each.n] += 1
            events.append(replace(each, n=each.n * PLACE + offsets[each.n]))
        watermark = max(watermark, base + draw(st.integers(0, 75)) - 10)
        clock += draw(st.integers(0, 10))
        drawn.append(Batch(watermark, tuple(sorted(events, key=lambda each: each.n)), clock))
    return [*drawn, Batch(base + FAR, (), clock)]


def shapes(kind: st.SearchStrategy[tuple[int, int]]) -> st.SearchStrategy[Shape]:
    """Draw operators over windows of some kind: a size and when the next one begins."""
    return st.builds(
        lambda sizes, **more: Shape(*sizes, **more),
        sizes=kind,
        lateness=st.sampled_from([0, 0, 7, 20]),
        early_n=st.sampled_from([0, 0, 1, 3]),
        early_ms=st.sampled_from([0, 0, 4, 15]),
        early_clock=st.sampled_from([0, 0, 0, 6]),
        keyed=st.booleans(),
    )


def check(
    spark: SparkSession, shape: Shape, given_batches: list[Batch], seeds: list[int], restart: int
) -> None:
    """Run the batches twice, rows shuffled otherwise and once with a restart amid: as modelled."""
    note(f"{shape}, seeds {seeds}")
    model = WindowModel(shape)
    flows = [MemoryFlow(spark, flow_of(shape)) for _ in seeds]
    for number, batch in enumerate(given_batches):
        rows, late = model.batch(batch)
        for flow, seed in zip(flows, seeds, strict=True):
            # A restart counts as a move of the watermark: results by the clock may come sooner.
            if flow is flows[0] and number == restart and not shape.early_clock:
                flow.restart()
            made = run(flow, batch, seed)
            assert bag(map(as_row, made.get("updates", []))) == bag(rows), f"batch {number}"
            assert Counter(row["n"] for row in made.get("late", [])) == Counter(late)


def run(flow: MemoryFlow, batch: Batch, seed: int, **more: Any) -> Mapping[str, list[Any]]:
    """Run one batch."""
    records = [record(event) for event in batch.events]
    return flow.batch(records, seed=seed, watermark=batch.watermark, clock=batch.clock, **more)


@given(shapes(st.sampled_from([(10, 10), (1, 1), (25, 25)])), batches(), st.data())
@settings(max_examples=examples(150))
def test_tumbling_windows_are_lists_of_events(
    spark: SparkSession, shape: Shape, drawn: list[Batch], data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(SEEDS, min_size=2, max_size=2))
    check(spark, shape, drawn, seeds, data.draw(st.integers(0, len(drawn))))


@given(shapes(st.sampled_from([(10, 5), (10, 3), (20, 1)])), batches(), st.data())
@settings(max_examples=examples(150))
def test_an_event_counts_in_each_sliding_window_that_is_not_over(
    spark: SparkSession, shape: Shape, drawn: list[Batch], data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(SEEDS, min_size=2, max_size=2))
    check(spark, shape, drawn, seeds, data.draw(st.integers(0, len(drawn))))


@given(shapes(st.sampled_from([(4, 0), (10, 0)])), batches(), st.data())
@settings(max_examples=examples(200))
def test_sessions_grow_and_join(
    spark: SparkSession, shape: Shape, drawn: list[Batch], data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(SEEDS, min_size=2, max_size=2))
    check(spark, shape, drawn, seeds, data.draw(st.integers(0, len(drawn))))


@pytest.mark.parametrize("cut", [session(gap=ms(10)), tumbling(ms(30))])
@given(batches(keys=1), st.lists(SEEDS, min_size=2, max_size=2))
@settings(max_examples=examples(100))
def test_rows_do_not_depend_on_the_order_that_events_come_out_of_a_shuffle(
    spark: SparkSession, cut: Windows, drawn: list[Batch], seeds: list[int]
) -> None:
    flow = Flow("shuffled")
    events = flow.stream("events", SCHEMA, event_time="at").with_columns(third="x / 3 * n")
    made = events.key_by("key").window("w", cut).aggregate(hits=count(), thirds=total("third"))
    made.updates.select("key", "window_start", "window_end", "hits", "thirds").to("updates")
    made.late.select("n").to("late")
    one, other = MemoryFlow(spark, flow), MemoryFlow(spark, flow)
    for batch in drawn:
        rows, again = run(one, batch, seeds[0]), run(other, batch, seeds[1])
        assert {name: bag(each) for name, each in rows.items()} == {
            name: bag(each) for name, each in again.items()
        }


def deduped(within: int) -> Flow:
    """Return a flow with one dedupe operator."""
    flow = Flow("deduped")
    once = flow.stream("events", SCHEMA, event_time="at").dedupe("once", by="by", within=ms(within))
    for name in DEDUPED:
        getattr(once, name).select("n").to(name)
    return flow


def counted(made: Mapping[str, list[Any]]) -> dict[str, Counter[int]]:
    """Return the events of each of dedupe's outputs."""
    return {name: Counter(row["n"] for row in made.get(name, [])) for name in DEDUPED}


def check_kept(memory: MemoryFlow, model: DedupeModel, *, within: int, watermark: int) -> None:
    """Compare what dedupe keeps with what it must keep, and may keep until it looks again."""
    state = memory.state()
    # A header of 8 bytes, then each time.
    kept = {
        (entry.key.decode(), time)
        for entry in state.held
        for (time,) in struct.iter_unpack("<q", entry.value[8:])
    }
    look = max(1, within // LOOKS)
    assert model.times_after(watermark - 2 * within) <= kept
    assert kept <= model.times_after(watermark - 2 * within - look)
    # One timer for all keys of a bucket, and none for a bucket without any.
    assert sorted(bucket for bucket, _ in state.timers) == sorted(
        {entry.bucket for entry in state.held}
    )
    assert all(moment > watermark and moment % look == 0 for _, moment in state.timers)


@pytest.fixture(scope="module")
def shared(spark: SparkSession) -> list[str]:
    """Give keys of which the first ones are in one bucket."""
    return [*map(str, keys_of_one_bucket(spark, 4)), "other", ""]


@given(batches(keys=1, kinds=6), st.sampled_from([1, 3, 10, 30]), SEEDS, st.integers(0, 6))
@settings(max_examples=examples(250))
def test_of_events_less_than_a_span_apart_dedupe_lets_one_pass(
    spark: SparkSession,
    shared: list[str],
    drawn: list[Batch],
    within: int,
    seed: int,
    restart: int,
) -> None:
    memory, model = MemoryFlow(spark, deduped(within)), DedupeModel(within)
    for number, each in enumerate(drawn):
        events = tuple(replace(event, by=shared[int(event.by)]) for event in each.events)
        batch = replace(each, events=events)
        if number == restart:
            memory.restart()
        made = counted(run(memory, batch, seed))
        assert made == {name: Counter(wanted) for name, wanted in model.batch(batch).items()}
        check_kept(memory, model, within=within, watermark=batch.watermark)
    assert memory.state() == MemoryState((), ())


def test_dedupe_looks_after_many_keys_of_each_bucket(spark: SparkSession) -> None:
    within, keys, span = 40, 12_000, 200
    memory, model = MemoryFlow(spark, deduped(within)), DedupeModel(within)
    draw = random.Random(7)
    for number in range(8):
        watermark = max(0, 30 * number - span // 4)
        events = tuple(
            Event(
                PLACE * (n % 2) + n, "", draw.randint(watermark, watermark + span), by=str(n // 2)
            )
            for n in sorted(draw.sample(range(2 * keys), keys // 2))
        )
        batch = Batch(watermark, tuple(sorted(events, key=lambda each: each.n)))
        if number in (3, 6):
            memory.restart()
        made = counted(run(memory, batch, number))
        assert made == {name: Counter(wanted) for name, wanted in model.batch(batch).items()}
        check_kept(memory, model, within=within, watermark=watermark)
        state = memory.state()
        assert len(state.timers) < len(state.held)
    run(memory, Batch(FAR, ()), 0)
    assert memory.state() == MemoryState((), ())


def test_a_bucket_is_looked_through_a_few_times_within_the_span(spark: SparkSession) -> None:
    """However many of its keys are due, each at a moment of its own."""
    within, many = 4_000, 8
    memory = MemoryFlow(spark, deduped(within))
    keys = keys_of_one_bucket(spark, many)
    events = (Event(n, "", n * within // many, by=str(key)) for n, key in enumerate(keys))
    run(memory, Batch(0, tuple(events)), 0)
    assert len(memory.state().held) == many
    moments = set()
    for watermark in range(2 * within, 4 * within, 10):
        moments |= {moment for _, moment in memory.state().timers}
        run(memory, Batch(watermark, ()), 0)
    assert len(moments) <= LOOKS + 1
    assert memory.state() == MemoryState((), ())


@given(batches(), SEEDS)
@settings(max_examples=examples(100))
def test_rows_that_come_one_by_one_are_counted_alike(
    spark: SparkSession, drawn: list[Batch], seed: int
) -> None:
    shape = Shape(10, 5)
    memory, model = MemoryFlow(spark, flow_of(shape)), WindowModel(shape)
    for batch in drawn:
        rows, late = model.batch(batch)
        made = run(memory, batch, seed, one_by_one=True)
        # What came first depends on the order.
        found = [{**as_row(row), "seen": []} for row in made.get("updates", [])]
        assert bag(found) == bag({**row, "seen": []} for row in rows)
        assert Counter(row["n"] for row in made.get("late", [])) == Counter(late)


@given(batches(), SEEDS, st.integers(0, 6))
@settings(max_examples=examples(100))
def test_windows_of_windows_hold_every_event_that_the_first_ones_do(
    spark: SparkSession, drawn: list[Batch], seed: int, restart: int
) -> None:
    flow = Flow("chained")
    events = flow.stream("events", SCHEMA, event_time="at")
    inner = events.key_by("key").window("inner", tumbling(ms(5))).aggregate(hits=count())
    outer = inner.updates.key_by("key").window("outer", tumbling(ms(20)))
    outer_made = outer.aggregate(hits=total("hits"), windows=count())
    outer_made.updates.select("key", "window_start", "hits", "windows").to("updates")
    outer_made.late.to("late")
    memory, model = MemoryFlow(spark, flow), WindowModel(Shape(5, 5))
    made: list[Any] = []
    wanted: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for number, batch in enumerate(drawn):
        if number == restart:
            memory.restart()
        out = run(memory, batch, seed)
        made += out.get("updates", [])
        assert not out.get("late")
        for row in model.batch(batch)[0]:
            start = row["window_start"]
            wanted[row["key"], start - start % 20].append(row["hits"])
    found = [(row["key"], to_ms(row["window_start"]), row["hits"], row["windows"]) for row in made]
    assert sorted(found) == sorted(
        (key, start, sum(hits), len(hits)) for (key, start), hits in wanted.items()
    )
