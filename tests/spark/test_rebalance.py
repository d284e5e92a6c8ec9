"""Rebalanced rows are all there, spread over tasks, and in the same place in a replay."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from memory import MemoryFlow, as_bytes
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate.functions.keyed import KeyedProcess

ROW = "n BIGINT NOT NULL, key STRING NOT NULL"
MANY = 600


class Numbered(KeyedProcess[Any, Any]):
    """Emits each row of a key as it comes."""

    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.emit({"n": event.n, "key": event.key})


def _twice(row: Any) -> Any:
    return [{"n": row.n, "key": row.key}, {"n": -row.n, "key": row.key}]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_keyed_function_behind_a_rebalance_sees_a_key_in_order(
    spark: SparkSession, one_by_one: bool
) -> None:
    flow = Flow("ordered")
    rows = flow.stream("in", ROW).where("n > 0").rebalance()
    rows = rows.flat_map("twice", _twice, schema=ROW).rebalance()
    keyed = rows.key_by("key").process("numbered", Numbered(), schema=ROW).out
    keyed.to("out", key="key")
    keyed.rebalance().where("n > 0").to("again")
    memory, draw = MemoryFlow(spark, flow), random.Random(8)
    made: dict[str, list[Any]] = defaultdict(list)
    sent = [{"n": n, "key": f"k{draw.randrange(4)}"} for n in range(60)]
    for seed, start in enumerate(range(0, 60, 20)):
        records = [
            MemoryRecord("in", as_bytes(row), sequence=row["n"], offset=row["n"], partition=1)
            for row in sent[start : start + 20]
        ]
        for output, values in memory.batch(records, seed=seed, one_by_one=one_by_one).items():
            made[output] += values
        memory.restart()
    wanted = [each for row in sent[1:] for each in (row, {**row, "n": -row["n"]})]
    for key in {row["key"] for row in sent}:
        numbers = [row["n"] for row in made["out"] if row["key"] == key]
        expected = [row["n"] for row in wanted if row["key"] == key]
        assert numbers == expected if not one_by_one else sorted(numbers) == sorted(expected)
    assert bag(made["again"]) == bag(row for row in wanted if row["n"] > 0)


def parts(bench: Bench, topic: str) -> dict[str, list[int]]:
    """Return the numbers that each task wrote, by the name of its file."""
    found: dict[str, list[int]] = defaultdict(list)
    folder = bench.topics / topic
    for file in sorted(folder.rglob("*.jsonl")):
        if any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts):
            continue
        lines = file.read_text().splitlines()
        found[file.stem.rpartition("-")[2]] += [json.loads(line)["n"] for line in lines]
    return {name: sorted(numbers) for name, numbers in found.items()}


def test_one_partition_is_written_by_all_tasks_the_same_each_time(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "two"):
        bench = Bench(tmp_path / name)
        # A short file is read by one task.
        bench.put("in", [{"n": n, "key": "k"} for n in range(MANY)])
        flow = Flow("spread")
        rows = flow.stream("in", ROW)
        rows.rebalance().map("slow", _same, schema=ROW).to("out")
        rows.to("straight")
        ended = bench.run(flow, parallelism=3)
        assert ended.totals.outputs == {"out": MANY, "straight": MANY, "dead-letters": 0}
        assert ended.totals.ports["in.rebalance-1"] == MANY
        runs.append(parts(bench, "out"))
        bench.put("in", [{"n": n, "key": "k"} for n in range(MANY, 2 * MANY)])
        bench.run(flow)
        assert bag(bench.read("out")) == bag({"n": n, "key": "k"} for n in range(2 * MANY))
    shares = sorted(map(len, runs[0].values()))
    assert len(shares) == 3
    assert shares[0] > MANY / 5
    assert runs[0] == runs[1]


def _same(row: Any) -> Any:
    return row
