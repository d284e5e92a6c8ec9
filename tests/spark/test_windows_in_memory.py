"""Windows and dedupe in memory, batch by batch, with watermarks of the test's own."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from bench import bag
from memory_flow import MemoryFlow, as_bytes
from pyspark.sql import SparkSession
from window_reference import Batch, DedupeModel, Event, Row, Shape, WindowModel
from window_runs import SCHEMA, aggregated, as_row

from headgate import Flow, HeadgateError
from headgate._kernel.memory_query import MemoryRecord
from headgate.flow.operators.windowing import Trigger, Windows
from headgate.windows import (
    collect,
    count,
    every_event_time,
    every_events,
    every_processing_time,
    last,
    session,
    sliding,
    tumbling,
)
from headgate.windows import sum as total

SHAPES = {
    "tumbling": Shape(10, 10),
    "tumbling-early": Shape(10, 10, lateness=7, early_n=3, early_ms=4),
    "sliding": Shape(12, 5, lateness=3, early_n=2),
    "sliding-early": Shape(12, 4, early_ms=6),
    "session": Shape(4, 0),
    "session-late": Shape(4, 0, lateness=6, early_n=3, early_ms=5),
    "together": Shape(10, 10, lateness=2, early_n=5, keyed=False),
}
END = 10_000


def millis(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def windows_of(shape: Shape) -> Windows:
    if not shape.every:
        return session(gap=millis(shape.size))
    if shape.every == shape.size:
        return tumbling(millis(shape.size))
    return sliding(millis(shape.size), every=millis(shape.every))


def triggers_of(shape: Shape) -> list[Trigger]:
    found: list[Trigger] = []
    if shape.early_n:
        found.append(every_events(shape.early_n))
    if shape.early_ms:
        found.append(every_event_time(millis(shape.early_ms)))
    return found


def windowed(shape: Shape) -> Flow:
    flow = Flow("windowed")
    events = flow.stream("in", SCHEMA, event_time="at", out_of_orderness="5s")
    made = (events.key_by("key") if shape.keyed else events).window(
        "w", windows_of(shape), allowed_lateness=millis(shape.lateness), early=triggers_of(shape)
    )
    counted = made.aggregate(**aggregated())
    counted.updates.to("updates")
    counted.late.select("n").to("late")
    return flow


def drawn(draw: random.Random, batches: int) -> Iterator[Batch]:
    """Yield batches whose times move on, many out of order and some behind the watermark."""
    number, watermark = 0, 0
    for at in range(batches):
        events = []
        for _ in range(draw.choice([0, 1, 2, 8])):
            time = max(1, 3 * at + draw.randint(-25, 12))
            events.append(
                Event(
                    n=number,
                    key=draw.choice("ab"),
                    at=time,
                    v=draw.choice([None, 0, 7, -3, 2**40]),
                    x=draw.choice([None, 0.25, -1.5, 3.0]),
                    s=draw.choice([None, "", "a", "é", "😀", "zz"]),
                    by=draw.choice("xyz"),
                )
            )
            number += 1
        yield Batch(watermark, tuple(events))
        watermark = max(watermark, watermark + draw.choice([0, 0, 1, 3, 9, 20]))
        watermark = min(watermark, 3 * at)
    yield Batch(END, ())


def records(events: tuple[Event, ...]) -> list[MemoryRecord]:
    return [
        MemoryRecord("in", as_bytes(asdict(each)), sequence=each.n, offset=each.n)
        for each in events
    ]


@pytest.mark.parametrize("name", SHAPES)
def test_windows_go_on_from_their_state_in_a_new_query(spark: SparkSession, name: str) -> None:
    shape = SHAPES[name]
    flow = windowed(shape)
    for seed in range(6):
        draw = random.Random(seed)
        memory, model = MemoryFlow(spark, flow), WindowModel(shape)
        for number, batch in enumerate(drawn(draw, 30)):
            if draw.random() < 0.1:
                memory.restart()
            made = memory.batch(records(batch.events), seed=seed, watermark=batch.watermark)
            rows, late = model.batch(batch)
            about = f"{name}, seed {seed}, batch {number}: {batch}"
            assert bag(as_row(row) for row in made["updates"]) == bag(rows), about
            assert Counter(row["n"] for row in made["late"]) == Counter(late), about


@pytest.mark.parametrize("name", ["tumbling-early", "session-late", "together"])
def test_windows_keep_their_promises_where_each_event_comes_alone(
    spark: SparkSession, name: str
) -> None:
    shape = SHAPES[name]
    flow = windowed(shape)
    for seed in range(10):
        memory = MemoryFlow(spark, flow)
        told: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        batches = list(drawn(random.Random(seed), 30))
        late = 0
        for batch in batches:
            made = memory.batch(
                records(batch.events), seed=seed, watermark=batch.watermark, one_by_one=True
            )
            late += len(made["late"])
            for row in made["updates"]:
                told[row.get("key"), row["window_start"], row["window_end"]].append(row)
        for window, rows in told.items():
            kinds = ["partial" if row["partial"] else row["correction"] for row in rows]
            assert kinds.count(False) <= 1, (seed, window, kinds)
            assert kinds == sorted(kinds, key=["partial", False, True].index), (seed, window)
            assert all(a["hits"] <= b["hits"] for a, b in pairwise(rows)), (seed, window)
        if shape.every:
            counted = sum(rows[-1]["hits"] for rows in told.values())
            assert counted + late == sum(len(batch.events) for batch in batches), seed


def test_dedupe_goes_on_from_its_state_in_a_new_query(spark: SparkSession) -> None:
    flow = Flow("deduped")
    once = flow.stream("in", SCHEMA, event_time="at", out_of_orderness="5s").dedupe(
        "once", by="by", within=millis(9)
    )
    for output in ("unique", "repeated", "late"):
        getattr(once, output).select("n").to(output)
    for seed in range(10):
        draw = random.Random(seed)
        memory, model = MemoryFlow(spark, flow), DedupeModel(9)
        for number, batch in enumerate(drawn(draw, 30)):
            if draw.random() < 0.1:
                memory.restart()
            made = memory.batch(records(batch.events), seed=seed, watermark=batch.watermark)
            in_time = sorted(batch.events, key=lambda each: (each.at, each.n))
            for output, wanted in model.batch(Batch(batch.watermark, tuple(in_time))).items():
                found = Counter(row["n"] for row in made[output])
                assert found == Counter(wanted), (seed, number, output)


def hits(flow: Flow, uid: str, *early: Trigger, **aggregates: Any) -> Any:
    events = flow.stream(
        "in", "key STRING, at BIGINT, v INT", event_time="at", out_of_orderness="5s"
    )
    return (
        events.key_by("key")
        .window(uid, tumbling(millis(100)), early=early)
        .aggregate(hits=count(), **aggregates)
    )


def event(at: int, key: str | None = "k", v: int | None = 1, offset: int = 0) -> MemoryRecord:
    value = as_bytes({"key": key, "at": at, "v": v})
    return MemoryRecord("in", value, sequence=offset, offset=offset)


def test_a_row_by_the_clock_comes_with_events_or_when_the_watermark_moves(
    spark: SparkSession,
) -> None:
    flow = Flow("clock")
    hits(flow, "w", every_processing_time("10s")).updates.to("out")
    memory = MemoryFlow(spark, flow)

    def told(watermark: int, clock: int, *given: MemoryRecord) -> list[int]:
        rows = memory.batch(given, watermark=watermark, clock=clock)["out"]
        return [row["hits"] if row["partial"] else -row["hits"] for row in rows]

    assert told(1, 1_000, event(5)) == []
    assert told(1, 12_000) == [], "the watermark stands still, so nothing wakes the key"
    assert told(2, 12_000) == [1]
    assert told(3, 60_000) == [], "nothing new to tell"
    assert told(3, 61_000, event(6)) == [2], "more than 10 s since the last row"
    assert told(3, 62_000, event(7)) == []
    assert told(4, 70_000) == []
    assert told(5, 71_000) == [3]
    assert told(100, 99_000, event(99, "other")) == [-3]


def test_the_time_of_a_result_is_that_of_its_batch(spark: SparkSession) -> None:
    flow = Flow("clock")
    stream = flow.stream("in", "key BIGINT, at BIGINT", event_time="at")
    window = stream.key_by("key").window("w", tumbling("1s"), early=every_events(2))
    window.aggregate(n=count()).updates.to("out")
    memory = MemoryFlow(spark, flow)
    given = [MemoryRecord("in", b'{"key": 1, "at": 1}', offset=n) for n in range(4)]
    early = memory.batch(given, clock=1_700_000_000_123)["out"]
    final = memory.batch([], clock=1_700_000_001_456, watermark=2_000)["out"]
    assert [(row["n"], row["processed_at"]) for row in early] == [
        (2, "2023-11-14T22:13:20.123Z"),
        (4, "2023-11-14T22:13:20.123Z"),
    ]
    assert [(row["n"], row["processed_at"]) for row in final] == [(4, "2023-11-14T22:13:21.456Z")]


def test_an_event_without_a_key_is_a_dead_letter(spark: SparkSession) -> None:
    flow = Flow("keyless")
    hits(flow, "w").updates.to("out")
    made = MemoryFlow(spark, flow).batch([event(5, key=None)])
    assert [letter["code"] for letter in made["dead-letters"]] == ["NO_KEY"]


def test_a_key_whose_type_only_spark_knows_is_checked_by_the_kernel(spark: SparkSession) -> None:
    flow = Flow("windowed")
    events = flow.stream("in", SCHEMA, event_time="at").with_columns(k="n * 1.5D")
    events.key_by("k").window("w", tumbling("1m")).aggregate(n=count()).updates.to("out")
    with pytest.raises(HeadgateError) as caught:
        MemoryFlow(spark, flow)
    assert caught.value.code == "KEY_TYPE"
    assert caught.value.hint


def test_a_window_behind_a_window_closes_in_the_same_batch(spark: SparkSession) -> None:
    flow = Flow("chained")
    per_key = hits(flow, "per-key")
    overall = per_key.updates.where("NOT partial").window("overall", tumbling(millis(100)))
    figures = overall.aggregate(keys=count(), hits=total("hits"), counts=collect("hits", 9))
    figures.updates.to("out")
    figures.late.to("late")
    memory = MemoryFlow(spark, flow)
    memory.batch([event(5, "a"), event(7, "a", offset=1), event(99, "b", offset=2)], watermark=1)
    made = memory.batch([event(210, "c")], watermark=150)
    (row,) = made["out"]
    assert (row["keys"], row["hits"], sorted(row["counts"])) == (2, 3, [1, 2])
    assert made["late"] == []
    assert (row["window_end"], row["partial"]) == ("1970-01-01T00:00:00.100Z", False)
    assert memory.batch([], watermark=1_000)["out"][0]["hits"] == 1


def test_of_rows_at_one_place_the_last_one_counts(spark: SparkSession) -> None:
    flow = Flow("chained")
    events = flow.stream("in", "key STRING, at BIGINT", event_time="at")
    early = events.window("inner", tumbling(millis(10)), early=every_events(2))
    counts = early.aggregate(hits=count()).updates
    newest = counts.window("outer", tumbling(millis(100))).aggregate(hits=last("hits"))
    newest.updates.to("out")
    memory = MemoryFlow(spark, flow)
    # Early rows of one window, with 2, 4 and 6 events, differ in nothing but their count.
    memory.batch([event(5, "a", offset=place) for place in range(6)], seed=3)
    (row,) = memory.batch([], watermark=100)["out"]
    assert row["hits"] == 6


def test_a_sum_of_whole_numbers_that_does_not_fit_is_null(spark: SparkSession) -> None:
    flow = Flow("sums")
    events = flow.stream("in", "at BIGINT, v BIGINT", event_time="at", out_of_orderness="5s")
    events.window("w", tumbling(millis(100)), early=every_events(1)).aggregate(
        total=total("v")
    ).updates.to("out")
    memory = MemoryFlow(spark, flow)
    values = [2**63 - 1, 1, -5, -(2**63), -(2**63)]
    found = [
        row["total"] for value in values for row in memory.feed("in", {"at": 5, "v": value})["out"]
    ]
    assert found == [2**63 - 1, None, 2**63 - 5, -5, None]


def test_expressions_as_key_and_argument_count_as_columns_do(spark: SparkSession) -> None:
    flow = Flow("computed")
    events = flow.stream("in", "a BIGINT, price DOUBLE, at BIGINT", event_time="at")
    made = events.key_by("a % 10").window("w", tumbling(millis(10)))
    made.aggregate(total=total("price * 2"), n=count("nullif(a, 12)")).updates.to("out")
    memory = MemoryFlow(spark, flow)
    memory.feed("in", *({"a": a, "price": a / 2, "at": 1} for a in (1, 2, 11, 12, 22)))
    rows = memory.batch([], watermark=END)["out"]
    assert bag([{name: row[name] for name in ("a_10", "total", "n")} for row in rows]) == bag(
        [{"a_10": 1, "total": 12.0, "n": 2}, {"a_10": 2, "total": 36.0, "n": 2}]
    )


def test_a_key_that_is_an_expression_needs_a_type_that_can_be_a_key(spark: SparkSession) -> None:
    flow = Flow("computed")
    events = flow.stream("in", "a BIGINT, at BIGINT", event_time="at")
    made = events.key_by("a / 3").window("w", tumbling(millis(10)))
    made.aggregate(n=count()).updates.to("out")
    with pytest.raises(HeadgateError) as caught:
        MemoryFlow(spark, flow)
    assert caught.value.code == "KEY_TYPE"
    assert "'a_3' is DOUBLE" in caught.value.message


def test_structs_are_collected_across_a_restart(spark: SparkSession) -> None:
    flow = Flow("structs")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    schema = "id BIGINT, item STRUCT<sku: STRING, tags: ARRAY<STRING>>, at BIGINT"
    events = flow.stream("in", schema, event_time="at")
    known = events.enrich("e", users, on="id", into="user").matched
    made = known.window("w", tumbling(millis(10))).aggregate(
        items=collect("item", 3), users=collect("user", 9), pairs=collect("struct(id, at)", 2)
    )
    made.updates.to("out")
    memory = MemoryFlow(spark, flow)
    memory.feed("users", {"id": 1, "name": "é"}, {"id": 2, "name": None})
    first = {"id": 1, "item": {"sku": "a", "tags": ["x", None, "😀"]}, "at": 1}
    memory.feed("in", first, {"id": 2, "item": None, "at": 2})
    memory.restart()
    memory.feed("in", *({"id": 2, "item": {"sku": sku, "tags": []}, "at": 3} for sku in "bcd"))
    (row,) = memory.batch([], watermark=END)["out"]
    assert row["items"] == [first["item"], *({"sku": sku, "tags": []} for sku in "bc")]
    assert row["users"] == [{"id": 1, "name": "é"}, *[{"id": 2, "name": None}] * 4]
    assert row["pairs"] == [{"id": 1, "at": 1}, {"id": 2, "at": 2}]
