"""The interval join does what a nested loop does: property tests, batch by batch in memory."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from join_reference import OUTPUTS, Arrival, JoinModel
from memory_flow import MemoryFlow, as_bytes, keys_of_one_bucket
from pyspark.sql import SparkSession

from examples import examples
from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord, MemoryState
from headgate.windows import count, tumbling

SCHEMA = "n BIGINT NOT NULL, key STRING, at BIGINT NOT NULL, pad STRING"
FAR = 10**14
SEEDS = st.integers(0, 2**31)
BOUNDS = st.sampled_from([(0, 0), (5, 5), (0, 7), (7, 0), (1, 12), (60, 60), (40_000, 3)])
RECORD, PAGE = 0, 1

Batch = tuple[int, list[Arrival]]


def joined(before: int, after: int) -> Flow:
    """Return a flow with a join that writes all of its outputs."""
    flow = Flow("joined")
    left = flow.stream("left", SCHEMA, event_time="at")
    right = flow.stream("right", SCHEMA, event_time="at")
    made = left.join("j", right, on="key", before=ms(before), after=ms(after))
    made.matched.to("matched")
    made.left_only.to("left_only")
    made.right_only.to("right_only")
    made.late.to("late")
    return flow


def ms(span: int) -> timedelta:
    return timedelta(milliseconds=span)


def record(row: Arrival, pad: str = "") -> MemoryRecord:
    value = {"n": row.n, "key": row.key, "at": row.at, "pad": pad}
    return MemoryRecord(row.side, as_bytes(value), sequence=row.n, offset=row.n, timestamp=row.at)


def run(
    flow: MemoryFlow, batch: Batch, seed: int, *, pad: str = "", one_by_one: bool = False
) -> dict[str, Counter[object]]:
    """Run a batch and return what each output got, in the form of the model."""
    watermark, rows = batch
    records = [record(row, pad) for row in rows]
    made = flow.batch(records, seed=seed, watermark=watermark, one_by_one=one_by_one)
    assert not made.get("dead-letters")
    for row in made.get("late", []):
        assert row["right" if row["side"] == "left" else "left"] is None
    return {
        "matched": Counter((row["n"], row["right"]["n"]) for row in made.get("matched", [])),
        "left_only": Counter(row["n"] for row in made.get("left_only", [])),
        "right_only": Counter(row["n"] for row in made.get("right_only", [])),
        "late": Counter(row[row["side"]]["n"] for row in made.get("late", [])),
    }


@st.composite
def batches(draw: st.DrawFn, *, keys: int = 3) -> list[Batch]:
    """Draw batches whose watermark does not go back; the last one lets everything go."""
    base = draw(st.sampled_from([0, 1_757_000_000_000]))
    number, watermark, drawn = 0, 0, []
    arrival = st.tuples(
        st.sampled_from(["left", "right"]), st.integers(0, keys - 1), st.integers(0, 60)
    )
    for _ in range(draw(st.integers(1, 6))):
        rows = []
        for side, key, at in draw(st.lists(arrival, max_size=10)):
            rows.append(Arrival(number, side, str(key), base + at))
            number += 1
        watermark = max(watermark, base + draw(st.integers(0, 75)) - 15)
        drawn.append((watermark, rows))
    return [*drawn, (FAR, [])]


def held_keys(state: MemoryState) -> set[str]:
    return {entry.key[1:].decode() for entry in state.held if entry.key[0] == RECORD}


def check(
    spark: SparkSession,
    bounds: tuple[int, int],
    drawn: Sequence[Batch],
    seeds: Sequence[int],
    restart: int,
    *,
    one_by_one: bool = False,
) -> None:
    """Run batches, with shuffled rows and a restart amid, and compare them with the model."""
    note(f"bounds {bounds}, seeds {seeds}, restart at {restart}")
    model = JoinModel(*bounds)
    flows = [MemoryFlow(spark, joined(*bounds)) for _ in seeds]
    for number, batch in enumerate(drawn):
        wanted = model.batch(*batch)
        for flow, seed in zip(flows, seeds, strict=True):
            if flow is flows[0] and number == restart:
                flow.restart()
            assert run(flow, batch, seed, one_by_one=one_by_one) == wanted, f"batch {number}"
            state = flow.state()
            assert held_keys(state) == model.keys()
            assert all(moment > batch[0] for _, moment in state.timers)
    for flow in flows:
        assert flow.state() == MemoryState((), ())


@given(BOUNDS, batches(), st.lists(SEEDS, min_size=2, max_size=2), st.integers(0, 6))
@settings(max_examples=examples(250))
def test_a_join_is_a_nested_loop(
    spark: SparkSession,
    bounds: tuple[int, int],
    drawn: list[Batch],
    seeds: list[int],
    restart: int,
) -> None:
    check(spark, bounds, drawn, seeds, restart)


@given(BOUNDS, batches(), SEEDS)
@settings(max_examples=examples(100))
def test_rows_that_come_one_by_one_are_joined_alike(
    spark: SparkSession, bounds: tuple[int, int], drawn: list[Batch], seed: int
) -> None:
    check(spark, bounds, drawn, [seed], -1, one_by_one=True)


def test_bounds_belong_to_the_interval(spark: SparkSession) -> None:
    drawn = [
        (0, [Arrival(n, "right", "k", at) for n, at in enumerate([79, 80, 100, 105, 106])]),
        (0, [Arrival(9, "left", "k", 100)]),
    ]
    flow = MemoryFlow(spark, joined(20, 5))
    assert run(flow, drawn[0], 0)["matched"] == Counter()
    assert run(flow, drawn[1], 0)["matched"] == Counter([(9, 1), (9, 2), (9, 3)])
    # A right row goes when the watermark has passed its time and the time before it.
    assert run(flow, (99, []), 0)["right_only"] == Counter()
    assert run(flow, (100, []), 0)["right_only"] == Counter([0])
    assert run(flow, (126, []), 0)["right_only"] == Counter()
    assert run(flow, (127, []), 0)["right_only"] == Counter([4])
    assert flow.state() == MemoryState((), ())


def test_the_watermark_itself_is_not_late(spark: SparkSession) -> None:
    flow = MemoryFlow(spark, joined(10, 10))
    run(flow, (0, [Arrival(0, "left", "k", 90)]), 0)
    made = run(flow, (100, [Arrival(1, "right", "k", 100), Arrival(2, "right", "k", 99)]), 0)
    assert made["matched"] == Counter([(0, 1)])
    assert made["late"] == Counter([2])
    assert made["left_only"] == Counter()


def test_a_side_that_nobody_reads_is_counted(spark: SparkSession) -> None:
    flow = Flow("counted")
    left = flow.stream("left", SCHEMA, event_time="at")
    right = flow.stream("right", SCHEMA, event_time="at")
    left.join("j", right, on="key", within="5s").matched.to("matched")
    memory = MemoryFlow(spark, flow)
    memory.batch([record(Arrival(0, "left", "a", 1)), record(Arrival(1, "right", "b", 1))])
    made = memory.batch([record(Arrival(2, "right", "a", 1))], watermark=FAR)
    assert made == {"j.left_only": [None], "j.right_only": [None], "j.late": [None]}


def random_batches(draw: random.Random, many: int, span: int) -> list[Batch]:
    """Return batches of a few hot keys, and of many others, that move on by `span` each."""
    number, drawn = 0, []
    for batch in range(many):
        rows = []
        for _ in range(120):
            side = draw.choice(["left", "right"])
            key = "hot" if draw.random() < 0.4 else str(draw.randint(0, 60))
            at = span * batch + draw.randint(0, 3 * span)
            rows.append(Arrival(number, side, key, at))
            number += 1
        drawn.append((max(0, span * (batch - 1)), rows))
    return [*drawn, (FAR, [])]


@pytest.mark.parametrize("bounds", [(30, 30), (500, 0), (0, 200), (900, 900)], ids=str)
def test_keys_that_outgrow_their_record_are_joined_alike(
    spark: SparkSession, bounds: tuple[int, int]
) -> None:
    model, draw = JoinModel(*bounds), random.Random(7)
    flow = MemoryFlow(spark, joined(*bounds))
    most = 0
    for number, batch in enumerate(random_batches(draw, 8, 150)):
        if number in (3, 6):
            flow.restart()
        made = run(flow, batch, number, pad="x" * draw.choice([0, 10, 900]))
        assert made == model.batch(*batch), f"batch {number}"
        state = flow.state()
        assert held_keys(state) == model.keys()
        most = max(most, sum(entry.key[0] == PAGE for entry in state.held))
    assert most > 2
    assert flow.state() == MemoryState((), ())


@pytest.mark.parametrize("many", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_row_of_a_hot_key_does_not_rewrite_the_others(spark: SparkSession, many: int) -> None:
    """Many left rows of one key are within the interval; then single rows of both sides come."""
    half, step = many // 2, many // 4
    flow = MemoryFlow(spark, joined(half, half))
    for start in range(0, many, step):
        run(flow, (0, [Arrival(n, "left", "hot", n) for n in range(start, start + step)]), 0)

    def entries() -> dict[bytes, bytes]:
        return {entry.key: entry.value for entry in flow.state().held}

    held = [entries()]
    assert max(map(len, held[0].values())) < 64 * 1024
    assert len(held[0]) > many // 500
    for n in range(3):
        run(flow, (0, [Arrival(many + n, "left", "hot", half + n)]), 0)
        held.append(entries())
    for one, other in pairwise(held):
        changed = [key for key in one | other if one.get(key) != other.get(key)]
        assert len(changed) <= 3
        assert sum(len(other.get(key, b"")) for key in changed) < 64 * 1024
    right = Arrival(many + 9, "right", "hot", many + 500)
    assert len(run(flow, (0, [right]), 0)["matched"]) == half - 500
    made = run(flow, (FAR, []), 0)
    assert len(made["left_only"]) == half + 503
    assert flow.state() == MemoryState((), ())


def test_keys_of_one_bucket_are_kept_apart(spark: SparkSession) -> None:
    keys = [*map(str, keys_of_one_bucket(spark, 3)), ""]
    model, flow, draw = JoinModel(9, 4), MemoryFlow(spark, joined(9, 4)), random.Random(3)
    for number in range(12):
        rows = [
            Arrival(
                100 * number + place,
                draw.choice(["left", "right"]),
                draw.choice(keys),
                5 * number + draw.randint(0, 12),
            )
            for place in range(9)
        ]
        batch = (max(0, 5 * number - 6), rows)
        assert run(flow, batch, number) == model.batch(*batch)
    assert run(flow, (FAR, []), 0) == model.batch(FAR, [])
    assert flow.state() == MemoryState((), ())


def test_rows_leave_in_one_order_whatever_order_they_come_in(spark: SparkSession) -> None:
    drawn = random_batches(random.Random(5), 3, 50)
    runs: list[list[Any]] = []
    for seed in (1, 2):
        flow, made = MemoryFlow(spark, joined(40, 40)), []
        for watermark, rows in drawn:
            records = [record(row) for row in rows if row.key == "hot"]
            out = flow.batch(records, seed=seed, watermark=watermark)
            made.append({name: out.get(name, []) for name in OUTPUTS})
        runs.append(made)
    assert runs[0] == runs[1]


def test_a_window_behind_a_join_counts_every_row(spark: SparkSession) -> None:
    flow = Flow("behind")
    left = flow.stream("left", SCHEMA, event_time="at")
    right = flow.stream("right", SCHEMA, event_time="at")
    made = left.join("j", right, on="key", before=ms(30), after=ms(30))
    outputs = {"matched": made.matched, "left_only": made.left_only, "right_only": made.right_only}
    for name, stream in outputs.items():
        windows = stream.key_by("key").window(f"w-{name}", tumbling(ms(20)))
        counted = windows.aggregate(hits=count())
        counted.updates.to(name)
        counted.late.to(f"late-{name}")
    memory, model = MemoryFlow(spark, flow), JoinModel(30, 30)
    hits: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for number, (watermark, rows) in enumerate(random_batches(random.Random(11), 6, 60)):
        out = memory.batch(map(record, rows), seed=number, watermark=watermark)
        assert not any(out.get(f"late-{name}") for name in outputs)
        for name in outputs:
            hits[name] += sum(row["hits"] for row in out.get(name, []))
        modelled = model.batch(watermark, rows)
        wanted.update({name: modelled[name].total() for name in outputs})
    assert hits == wanted


def test_a_join_behind_windows_pairs_what_closes_together(spark: SparkSession) -> None:
    flow = Flow("above")
    sides = []
    for name in ("left", "right"):
        stream = flow.stream(name, SCHEMA, event_time="at")
        windows = stream.key_by("key").window(f"w-{name}", tumbling(ms(20)))
        sides.append(windows.aggregate(hits=count()).updates)
    made = sides[0].join("j", sides[1], on="key", within=ms(0))
    made.matched.select("key", "hits", "right.hits AS others").to("matched")
    made.left_only.select("key", "hits").to("left_only")
    made.right_only.select("key", "hits").to("right_only")
    made.late.to("late")
    memory = MemoryFlow(spark, flow)
    rows = [
        Arrival(0, "left", "a", 5),
        Arrival(1, "right", "a", 7),
        Arrival(2, "left", "b", 8),
        Arrival(3, "right", "c", 9),
        Arrival(4, "left", "a", 45),
        Arrival(5, "right", "a", 46),
    ]
    memory.batch(map(record, rows))
    out = memory.batch([], watermark=30)
    assert out["matched"] == [{"key": "a", "hits": 1, "others": 1}]
    assert out["left_only"] == [{"key": "b", "hits": 1}]
    assert out["right_only"] == [{"key": "c", "hits": 1}]
    # A drain ends event time: both sides close in its last batch, and are joined in it.
    out = memory.batch([], watermark=253_402_300_799_999)
    assert out == {"matched": [{"key": "a", "hits": 1, "others": 1}]}
    assert memory.state(2) == MemoryState((), ())


def test_more_pairs_than_a_call_has_in_memory_leave_in_one_order(spark: SparkSession) -> None:
    keys = [*map(str, keys_of_one_bucket(spark, 2)), "elsewhere"]
    drawn = []
    for number, watermark in enumerate([0, 30, 400]):
        draw = random.Random(number)
        rows = [
            Arrival(
                1_000 * number + place,
                draw.choice(["left", "right"]),
                draw.choice([keys[0], keys[0], *keys]),
                100 * number + draw.randint(0, 120),
            )
            for place in range(260)
        ]
        drawn.append((watermark, rows))
    model, runs = JoinModel(100, 100), []
    wanted = [model.batch(*batch) for batch in drawn]
    assert min(wanted[0]["matched"].total(), wanted[1]["matched"].total()) > 5_000
    for seed in (1, 2):
        flow = MemoryFlow(spark, joined(100, 100))
        assert [run(flow, batch, seed) for batch in drawn] == wanted
        flow = MemoryFlow(spark, joined(100, 100))
        runs.append(
            [
                flow.batch(map(record, rows), seed=seed, watermark=watermark)
                for watermark, rows in drawn
            ]
        )
    for one, other in zip(*runs, strict=True):
        hot = [
            [row for row in made.get("matched", []) if row["key"] == keys[0]]
            for made in (one, other)
        ]
        assert hot[0] == hot[1]


def test_more_keys_than_a_slot_of_time_has_room_for_go_at_their_times(spark: SparkSession) -> None:
    """The keys of a bucket are long, so that few of them fill a slot."""
    finder = MemoryFlow(spark, joined(40_000, 3))
    keys = [f"{number}{'x' * 700}" for number in range(9_000)]
    run(finder, (0, [Arrival(n, "left", key, 0) for n, key in enumerate(keys)]), 0)
    by_bucket: dict[int, list[str]] = {}
    for entry in finder.state().held:
        if entry.key[0] == RECORD:
            by_bucket.setdefault(entry.bucket, []).append(entry.key[1:].decode())
    chosen = sorted(sorted(by_bucket.values(), key=len)[-1])
    assert len(chosen) > 4
    model, flow, draw = JoinModel(40_000, 3), MemoryFlow(spark, joined(40_000, 3)), random.Random(4)
    for number in range(10):
        rows = [
            Arrival(
                100 * number + place,
                draw.choice(["left", "right", "right"]),
                draw.choice(chosen),
                9_000 * number + draw.randint(0, 30_000),
            )
            for place in range(12)
        ]
        batch = (max(0, 9_000 * (number - 1)), rows)
        assert run(flow, batch, number) == model.batch(*batch)
        assert held_keys(flow.state()) == model.keys()
    for watermark in (95_000, 99_000, 130_000, FAR):
        assert run(flow, (watermark, []), 0) == model.batch(watermark, [])
    assert flow.state() == MemoryState((), ())
