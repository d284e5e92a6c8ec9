"""Rebalanced rows are all there, and an operator with a key puts them in order again."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from bench import bag
from memory_flow import MemoryFlow, as_bytes
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate.functions.keyed import KeyedProcess

ROW = "n BIGINT NOT NULL, key STRING NOT NULL"


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
    rows.key_by("key").process("numbered", Numbered(), schema=ROW).out.to("out", key="key")
    memory, draw = MemoryFlow(spark, flow), random.Random(8)
    made: dict[str, list[Any]] = defaultdict(list)
    sent: list[dict[str, Any]] = [{"n": n, "key": f"k{draw.randrange(4)}"} for n in range(60)]
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


def test_a_rebalance_behind_an_operator_keeps_every_row(spark: SparkSession) -> None:
    flow = Flow("behind")
    keyed = flow.stream("in", ROW).key_by("key").process("numbered", Numbered(), schema=ROW).out
    keyed.to("out")
    spread = keyed.rebalance()
    spread.where("n % 2 = 0").flat_map("twice", _twice, schema=ROW).to("even")
    spread.with_columns(n="1 / (n % 10 - 9)").to("odd")
    memory = MemoryFlow(spark, flow)
    sent: list[dict[str, Any]] = [{"n": n, "key": f"k{n % 3}"} for n in range(50)]
    made = memory.feed("in", *sent)
    assert bag(made["out"]) == bag(sent)
    even = [row for row in sent if row["n"] % 2 == 0]
    assert bag(made["even"]) == bag(each for row in even for each in (row, {**row, "n": -row["n"]}))
    assert len(made["odd"]) == 45
    assert len(made["dead-letters"]) == 5
