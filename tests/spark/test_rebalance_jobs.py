"""Rebalanced rows of a whole job are spread over tasks, and in the same place in a replay."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench import Bench, bag

from headgate import Flow

ROW = "n BIGINT NOT NULL, key STRING NOT NULL"
MANY = 600


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


def test_a_label_behind_a_rebalance_works_in_all_tasks_and_others_keep_the_order(
    bench: Bench,
) -> None:
    flow = Flow("labels")
    rules = flow.broadcast("rules", "id INT NOT NULL, when STRING, label STRING", key="id")
    rows = flow.stream("in", ROW)
    spread = rows.rebalance().where("n >= 0").label("spread", rules).out
    spread.select("n", "labels").to("labelled")
    rows.label("ordered", rules).out.select("n").to("in-order")
    bench.put("rules", [{"id": 1, "when": "n % 2 = 0", "label": "even"}])
    bench.put("in", [{"n": n, "key": "k"} for n in range(MANY)])
    bench.run(flow, parallelism=3)
    shares = sorted(map(len, parts(bench, "labelled").values()))
    assert len(shares) == 3
    assert shares[0] > MANY / 5
    assert bag(bench.read("labelled")) == bag(
        {"n": n, "labels": ["even"] * (n % 2 == 0)} for n in range(MANY)
    )
    assert len(parts(bench, "in-order")) == 1
    assert [row["n"] for row in bench.read("in-order")] == list(range(MANY))


def _same(row: Any) -> Any:
    return row
