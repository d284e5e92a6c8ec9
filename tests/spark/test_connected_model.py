"""Two connected streams do what plain Python does, whatever batches their rows come in."""

from __future__ import annotations

import base64
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from connected_reference import Arrival, ChainModel, Made, chained, drawn, merged, value_of
from memory_flow import MemoryFlow, as_bytes
from pyspark.sql import SparkSession

from headgate import Context, Flow, KeyedCoProcess, KeyedProcess, Value
from headgate._kernel.memory_query import MemoryRecord
from headgate.errors import HeadgateError


def record(row: Arrival, *, timed: bool) -> MemoryRecord:
    """Return a row as its source reads it; a record's own time counts without event time only."""
    return MemoryRecord(
        row.side,
        as_bytes(value_of(row)),
        sequence=row.place,
        lane=7 * row.partition + 1,
        timestamp=0 if timed else row.at,
        partition=row.partition,
        offset=row.place,
    )


def by_key(rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        out[row["key"]].append(row["text"])
    return dict(out)


def letters_of(rows: Sequence[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the side and the number of each dead letter."""
    out = []
    for letter in rows:
        assert letter["source"] == "co-process 'c'"
        assert f"in on_{letter['side']}" in letter["reason"]
        raw = json.loads(base64.b64decode(letter["raw"]))
        out.append((letter["side"], raw.get("n") or raw["payload"]["n"]))
    return out


@pytest.mark.parametrize("timed", [True, False], ids=["event-time", "record-time"])
def test_rows_of_both_sides_come_in_the_order_of_the_model(
    spark: SparkSession, seed: int, timed: bool
) -> None:
    draw = random.Random(f"{seed}-{timed}")
    waiting = drawn(draw, 150)
    flows = [MemoryFlow(spark, chained(timed=timed)) for _ in range(2)]
    model, letters, watermark = ChainModel(), [], 0
    restart = draw.randint(2, 8)
    for number in range(100):
        rows = []
        for sequence in waiting:
            count = draw.choice([0, 1, 3, 20, 60])
            rows += sequence[:count]
            del sequence[:count]
        # A restarted flow does not know which timers wait for the watermark to move: it moves.
        steps = [30, 200] if number == restart + 1 else [0, 0, 30, 200]
        watermark += draw.choice(steps) if timed else 0
        wanted = model.batch(rows, watermark)
        seeds = draw.sample(range(1000), 2)
        made = [
            flow.batch(
                (record(row, timed=timed) for row in rows), seed=shuffle, watermark=watermark
            )
            for flow, shuffle in zip(flows, seeds, strict=True)
        ]
        # However rows are shuffled on their way, those of a key leave in one order.
        for one in made:
            assert by_key(one.get("out", [])) == wanted, f"batch {number}"
        letters += letters_of(made[0].get("dead-letters", []))
        if number == restart:
            flows[0].restart()
        if not any(waiting):
            break
    assert sorted(letters) == sorted(model.letters)
    assert {side for side, _ in letters} == {"left", "right"}
    if timed:
        last = model.batch([], 10**12)
        assert by_key(flows[0].batch([], watermark=10**12).get("out", [])) == last


def test_the_order_of_the_model_is_that_of_the_guide() -> None:
    """Times decide between partitions, and positions within one."""
    rows = [
        Arrival(1, "left", 0, 0, "k", at=50),
        Arrival(2, "left", 0, 1, "k", at=10),
        Arrival(3, "left", 1, 0, "k", at=40),
        Arrival(4, "right", 0, 0, "k", at=40),
        Arrival(5, "right", 0, 1, "k", at=60),
    ]
    assert [row.n for row in merged(reversed(rows))] == [3, 4, 1, 2, 5]


class Echo(KeyedCoProcess[Any, Any, Made]):
    """Names the side and the key of each row."""

    def on_left(self, row: Any, ctx: Context[Made]) -> None:
        ctx.emit(Made(str(ctx.key), f"left {row.n}"))

    def on_right(self, row: Any, ctx: Context[Made]) -> None:
        ctx.emit(Made(str(ctx.key), f"right {row.n}"))


def test_one_source_on_both_sides_is_taken_left_first_and_wide_keys_fit(
    spark: SparkSession,
) -> None:
    flow = Flow("same")
    rows = flow.stream("in", "n BIGINT, small INT, wide BIGINT")
    both = rows.where("n > 0").key_by("small").connect(rows.where("n > 1").key_by("wide"))
    both.process("e", Echo()).out.to("out")
    memory = MemoryFlow(spark, flow)
    values = [
        {"n": 1, "small": 1, "wide": 1},
        {"n": 2, "small": 1, "wide": 1},
        {"n": 3, "small": 1, "wide": 5_000_000_000},
        {"n": 4, "small": None, "wide": 1},
    ]
    made = memory.feed("in", *values, seed=3)
    assert by_key(made["out"]) == {
        "1": ["left 1", "left 2", "right 2", "left 3", "right 4"],
        "5000000000": ["right 3"],
    }
    [letter] = made["dead-letters"]
    assert (letter["code"], letter["side"]) == ("NO_KEY", "left")


def test_keys_whose_types_only_spark_knows_are_refused_when_they_differ(
    spark: SparkSession,
) -> None:
    flow = Flow("unlike")
    left, right = flow.stream("l", "n BIGINT, key STRING"), flow.stream("r", "n BIGINT")
    both = left.key_by("upper(key) AS k").connect(right.key_by("n % 7 AS k"))
    both.process("e", Echo()).out.to("out")
    with pytest.raises(HeadgateError) as caught:
        MemoryFlow(spark, flow)
    assert caught.value.code == "KEY_MISMATCH"
    assert "of the left stream is STRING" in str(caught.value)


class Sides(KeyedCoProcess[Any, Any, Any]):
    """Emits two rows for each event, on either side."""

    def on_left(self, event: Any, ctx: Context[Any]) -> None:
        self._emit("left", event.n, ctx)

    def on_right(self, event: Any, ctx: Context[Any]) -> None:
        self._emit("right", event.n, ctx)

    def _emit(self, side: str, n: int, ctx: Context[Any]) -> None:
        for number in range(2):
            ctx.emit({"key": ctx.key, "text": f"{side} {n} {number}"})


class Chained(KeyedProcess[Any, Any]):
    """Tells what came before, so that every change of the order shows."""

    before: Value[str]

    def on_event(self, event: Any, ctx: Context[Any]) -> None:
        ctx.emit({"text": f"{event.text} behind {self.before.get()}"})
        self.before.set(event.text)


@pytest.mark.parametrize("joins", [False, True])
def test_rows_of_a_record_that_is_on_both_sides_follow_each_other_left_ones_first(
    spark: SparkSession, joins: bool
) -> None:
    flow = Flow("shared")
    rows = flow.stream("in", "n BIGINT, key STRING, at BIGINT NOT NULL", event_time="at")
    other = rows.where("n > 0")
    if joins:
        pairs = rows.join("both", other, on="key", within="2ms").matched
        made = pairs.with_columns(text="concat(n, '-', right.n)")
    else:
        both = rows.key_by("key").connect(other.key_by("key"))
        made = both.process("both", Sides(), schema="key STRING, text STRING").out
    chain = made.key_by("key").process("chain", Chained(), schema="text STRING")
    chain.out.to("out")
    records = [
        MemoryRecord("in", as_bytes({"n": n, "key": "k", "at": n}), sequence=n, offset=n)
        for n in range(12)
    ]
    first, *again = [MemoryFlow(spark, flow).batch(records, seed=seed)["out"] for seed in range(5)]
    texts = [row["text"].partition(" behind")[0] for row in first]
    wanted = (
        [f"{a}-{b}" for a in range(12) for b in range(1, 12) if abs(a - b) <= 2]
        if joins
        else [
            f"{side} {n} {i}"
            for n in range(12)
            for side in ("left", "right")
            if side == "left" or n
            for i in range(2)
        ]
    )
    assert sorted(texts) == sorted(wanted)
    if not joins:
        assert texts == wanted
    assert again == [first] * 4
