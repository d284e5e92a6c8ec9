"""Unions in whole jobs: with functions behind them, restarted, and restored elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from bench import Bench, bag
from test_unions import BASE, ROW, SOURCES, Arrival, Record

from headgate import Flow
from headgate.windows import count, sum, tumbling  # noqa: A004 - the name of the aggregate


def functions() -> Flow:
    """Return a flow with functions behind unions: on rows, and on DataFrames."""
    flow = Flow("mixed")
    a, b, c = (
        flow.stream(name, schema, event_time="at", out_of_orderness="10m", idle_after="1s")
        for name, schema in SOURCES.items()
    )
    doubled = a.union(b).transform(_doubled)
    merged = doubled.union(c, a).map("kept", _kept, schema=ROW)
    windows = merged.key_by("key").window("counted", tumbling("1h"))
    windows.aggregate(hits=count(), total=sum("n")).updates.select("key", "hits", "total").to("out")
    merged.to("rows")
    return flow


def _doubled(df: Any) -> Any:
    return df.withColumn("n", df["n"] * 2)


def _kept(row: Any) -> Any:
    return row


@pytest.mark.parametrize(
    "restored", [pytest.param(False, marks=pytest.mark.long), True], ids=["restarted", "restored"]
)
def test_a_job_with_unions_goes_on_and_closes_its_windows(bench: Bench, restored: bool) -> None:
    draw = random.Random(17)
    rows: list[Arrival] = []
    for part in range(2):
        batch: list[Arrival] = []
        for n in range(300):
            at = BASE + part * 1_800_000 + draw.randrange(600_000)
            row: Record = {"n": 1000 * part + n, "key": f"k{draw.randrange(5)}", "at": at}
            batch.append((draw.choice("abc"), 0, row))
        for source in SOURCES:
            bench.put(source, [row for name, _, row in batch if name == source])
        rows += batch
        more: dict[str, Any] = {"parallelism": 2} if part == 0 else {"drain": True}
        if part and restored:
            more |= {"parallelism": 3, "restore_from": "latest"}
        ended = bench.run(functions(), max_batch=6000, **more)
    both = [{**row, "n": 2 * row["n"]} for name, _, row in rows if name in "ab"]
    merged = [*both, *(row for name, _, row in rows if name in "ac")]
    assert bag(bench.read("rows")) == bag(merged)
    hits: Counter[str] = Counter(row["key"] for row in merged)
    totals: Counter[str] = Counter()
    for row in merged:
        totals[row["key"]] += row["n"]
    counts = [{"key": key, "hits": hits[key], "total": totals[key]} for key in hits]
    assert bag(bench.read("out")) == bag(counts)
    assert ended.totals.outputs["out"] == len(counts)
