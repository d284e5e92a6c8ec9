"""Windows and dedupe do what plain Python does: property tests, batch by batch in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest
from bench import bag
from hypothesis import given, note, settings
from hypothesis import strategies as st
from memory import MemoryFlow, as_bytes
from pyspark.sql import SparkSession
from window_reference import Batch, DedupeModel, Event, Shape, WindowModel
from window_runs import SCHEMA, aggregated, as_row, to_ms

from headgate import Flow
from headgate._kernel.tester import TestRecord
from headgate.flow.triggers import Trigger
from headgate.flow.windowing import Windows
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


def record(event: Event) -> TestRecord:
    """Return an event as it stands in its partition."""
    partition, offset = divmod(event.n, PLACE)
    return TestRecord(
        "events", as_bytes(asdict(event)), sequence=offset, partition=partition, offset=offset
    )


@st.composite
def batches(draw: st.DrawFn, *, keys: int = 2) -> list[Batch]:
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
        by=st.integers(0, 2).map(str),
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
@settings(max_examples=150)
def test_tumbling_windows_are_lists_of_events(
    spark: SparkSession, shape: Shape, drawn: list[Batch], data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(SEEDS, min_size=2, max_size=2))
    check(spark, shape, drawn, seeds, data.draw(st.integers(0, len(drawn))))


@given(shapes(st.sampled_from([(10, 5), (10, 3), (20, 1)])), batches(), st.data())
@settings(max_examples=150)
def test_an_event_counts_in_each_sliding_window_that_is_not_over(
    spark: SparkSession, shape: Shape, drawn: list[Batch], data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(SEEDS, min_size=2, max_size=2))
    check(spark, shape, drawn, seeds, data.draw(st.integers(0, len(drawn))))


@given(shapes(st.sampled_from([(4, 0), (10, 0)])), batches(), st.data())
@settings(max_examples=200)
def test_sessions_grow_and_join(
    spark: SparkSession, shape: Shape, drawn: list[Batch], data: st.DataObject
) -> None:
    seeds = data.draw(st.lists(SEEDS, min_size=2, max_size=2))
    check(spark, shape, drawn, seeds, data.draw(st.integers(0, len(drawn))))


@pytest.mark.parametrize("cut", [session(gap=ms(10)), tumbling(ms(30))])
@given(batches(keys=1), st.lists(SEEDS, min_size=2, max_size=2))
@settings(max_examples=100)
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


@given(batches(keys=1), st.sampled_from([1, 10, 30]), SEEDS, st.integers(0, 6))
@settings(max_examples=200)
def test_of_events_less_than_a_span_apart_dedupe_lets_one_pass(
    spark: SparkSession, drawn: list[Batch], within: int, seed: int, restart: int
) -> None:
    flow = Flow("deduped")
    once = flow.stream("events", SCHEMA, event_time="at").dedupe("once", by="by", within=ms(within))
    outputs = {"unique": once.unique, "repeated": once.repeated, "late": once.late}
    for name, stream in outputs.items():
        stream.select("n").to(name)
    memory, model = MemoryFlow(spark, flow), DedupeModel(within)
    for number, batch in enumerate(drawn):
        if number == restart:
            memory.restart()
        made = run(memory, batch, seed)
        found = {name: Counter(row["n"] for row in made.get(name, [])) for name in outputs}
        assert found == {name: Counter(each) for name, each in model.batch(batch).items()}


@given(batches(), SEEDS)
@settings(max_examples=100)
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
@settings(max_examples=100)
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
