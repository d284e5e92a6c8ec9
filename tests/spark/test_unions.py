"""Unions do what concatenation does: every row by each way, and partitions stay in order."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bench import bag, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow, as_bytes
from pyspark.sql import SparkSession

from examples import examples
from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate.windows import count, sum, tumbling  # noqa: A004 - the name of the aggregate

ROW = "n BIGINT NOT NULL, key STRING, at BIGINT NOT NULL"
# The same columns in another order, some of which may be null.
OTHER = "at BIGINT NOT NULL, key STRING NOT NULL, n BIGINT"
SOURCES = {"a": ROW, "b": OTHER, "c": ROW}
FAR = 10**14
BASE = 1_767_258_000_000
PARTITIONS = 3

Record = dict[str, Any]
Arrival = tuple[str, int, Record]


def united() -> Flow:
    """Return a flow with unions before, between and behind operators, and a union of unions."""
    flow = Flow("united")
    a, b, c = (
        flow.stream(name, schema, event_time="at", out_of_orderness="1h")
        for name, schema in SOURCES.items()
    )
    names = flow.table("names", "key STRING NOT NULL, name STRING", key="key")
    both = a.union(b)
    both.to("both")
    # A record of `a` may come by three ways.
    every = both.where("n % 3 != 0").union(c, a.where("n % 2 = 0"), a.with_columns(n="-n"))
    every.to("every")
    named = every.enrich("named", names, on="key", into="who")
    matched = named.matched.with_columns(key="who.name").select("n", "key", "at")
    again = matched.union(named.missing, c)
    again.to("again", key="key")
    windows = again.key_by("key").window("counted", tumbling("1h"))
    counted = windows.aggregate(hits=count(), total=sum("n"))
    counted.updates.select("key", "hits", "total").to("counts")
    counted.late.to("late")
    return flow


def expected(rows: Sequence[Arrival], names: dict[str, str]) -> dict[str, list[Record]]:
    """Return the rows of each output, in plain Python."""
    of: dict[str, list[Record]] = defaultdict(list)
    for source, _, row in rows:
        of[source].append(row)
    both = of["a"] + of["b"]
    every = [row for row in both if row["n"] % 3]
    every += of["c"]
    every += [row for row in of["a"] if row["n"] % 2 == 0]
    every += [{**row, "n": -row["n"]} for row in of["a"]]
    again = [{**row, "key": names.get(row["key"], row["key"])} for row in every] + of["c"]
    hits: Counter[tuple[str, int]] = Counter()
    totals: Counter[tuple[str, int]] = Counter()
    for row in again:
        window = row["key"], row["at"] // 3_600_000
        hits[window] += 1
        totals[window] += row["n"]
    counts = [{"key": key[0], "hits": hits[key], "total": totals[key]} for key in hits]
    return {"both": both, "every": every, "again": again, "counts": counts, "late": []}


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    rows = st.tuples(
        st.sampled_from("abc"),
        st.integers(0, PARTITIONS - 1),
        st.sampled_from(["k1", "k2", "k3"]),
        st.integers(0, 7_200_000),
    )
    return [
        (source, partition, {"n": n, "key": key, "at": BASE + at})
        for n, (source, partition, key, at) in enumerate(draw(st.lists(rows, max_size=40)), start=1)
    ]


def record(arrival: Arrival) -> MemoryRecord:
    source, partition, row = arrival
    n = row["n"]
    return MemoryRecord(source, as_bytes(row), sequence=n, partition=partition, offset=n)


def check_order(made: Sequence[Record], batch: Sequence[Arrival]) -> None:
    """Rows of a partition are in its order; the copies of a record in that of the union."""
    place = {row["n"]: (source, partition) for source, partition, row in batch}
    of: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in made:
        of[place[abs(row["n"])]].append(row["n"])
    for numbers in of.values():
        assert all(abs(one) <= abs(other) for one, other in pairwise(numbers)), numbers
        # The negative copy comes in last.
        assert all(one != -other or one > 0 for one, other in pairwise(numbers)), numbers


@given(arrivals(), st.lists(st.integers(0, 40), max_size=5), st.integers(0, 2**31), st.booleans())
@settings(max_examples=examples(40))
def test_a_union_is_a_concatenation(
    spark: SparkSession, rows: list[Arrival], cuts: list[int], seed: int, one_by_one: bool
) -> None:
    names = {"k1": "first", "k2": "second"}
    flow = MemoryFlow(spark, united())
    flow.feed("names", *({"key": key, "name": name} for key, name in names.items()))
    made: dict[str, list[Record]] = defaultdict(list)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for number, (start, end) in enumerate(pairwise(bounds)):
        batch = rows[start:end]
        if number == 2:
            flow.restart()
        out = flow.batch(map(record, batch), seed=seed + number, one_by_one=one_by_one)
        for output, values in out.items():
            made[output] += values
        if not one_by_one:
            check_order(out.get("both", []), batch)
            check_order(out.get("every", []), batch)
    made["counts"] += flow.batch([], watermark=FAR).get("counts", [])
    assert "dead-letters" not in made
    for output, values in expected(rows, names).items():
        assert bag(made.get(output, [])) == bag(values), output


def test_a_replay_has_the_same_rows_in_the_same_order(spark: SparkSession) -> None:
    draw = random.Random(4)
    batch = [
        (draw.choice("abc"), draw.randrange(PARTITIONS), {"n": n, "key": "k9", "at": BASE + n})
        for n in range(1, 200)
    ]
    runs = []
    for seed in (1, 2):
        flow = MemoryFlow(spark, united())
        out = flow.batch(map(record, batch), seed=seed)
        runs.append([out[name] for name in ("again", "every", "both")])
    # One message key, and one bucket: rows are in order across all partitions.
    assert runs[0][0] == runs[1][0]
    for one, other in zip(runs[0][1:], runs[1][1:], strict=True):
        assert bag(one) == bag(other)
        check_order(one, batch)
        check_order(other, batch)


def test_rows_that_fail_behind_a_union_name_the_topic_of_their_record(spark: SparkSession) -> None:
    flow = Flow("failing")
    a, b = flow.stream("a", ROW), flow.stream("b", OTHER)
    a.union(b).with_columns(n="1 / (n - 2)").to("out")
    memory = MemoryFlow(spark, flow)
    rows = [(source, 1, {"n": n, "key": "k", "at": 1}) for n in (1, 2) for source in "ab"]
    made = memory.batch(map(record, rows))
    assert [row["n"] for row in made["out"]] == [-1.0, -1.0]
    letters = [
        (row["record_topic"], row["partition"], row["offset"]) for row in made["dead-letters"]
    ]
    assert sorted(letters) == [("a", 1, 2), ("b", 1, 2)]


def test_types_that_only_spark_knows_must_be_equal(spark: SparkSession) -> None:
    flow = Flow("typed")
    a, b = flow.stream("a", ROW), flow.stream("b", ROW)
    a.with_columns(n="n * 2").union(b.with_columns(n="n * 2.5D")).to("out")
    with refused("BAD_UNION") as caught:
        MemoryFlow(spark, flow)
    message = "column 'n' of 'b.with-columns-1' is DOUBLE, and that of 'a.with-columns-1' is BIGINT"
    assert message in caught.value.message
    assert "CAST(n AS BIGINT)" in caught.value.hint
