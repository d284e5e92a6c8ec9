"""The example with pricing rules: its outputs are what plain Python makes."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench import Bench, bag
from broadcast_reference import Rules

EXAMPLE = Path(__file__).parents[2] / "examples" / "pricing"
CAMPAIGNS: dict[str, Any] = {
    "summer reading": lambda row: row["category"] == "books" and row["cents"] >= 2000,
    "a-list": lambda row: row["customer"].startswith("a"),
    "broken": lambda _: False,
}


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLE / name).read_text().splitlines()]


def test_prices_and_campaigns_are_those_of_plain_python(bench: Bench) -> None:
    given = {name: lines(f"{name}.jsonl") for name in ("orders", "campaigns", "discounts")}
    for name, rows in given.items():
        bench.put(name, rows)
    bench.run(EXAMPLE / "flow.py", parallelism=2)

    discounts, seen = Rules(), defaultdict[str, int](int)
    discounts.apply(given["discounts"])
    priced, labelled = [], []
    for row in given["orders"]:
        seen[row["customer"]] += 1
        percents = [
            (rule["percent"], rule["id"])
            for rule in discounts.ordered()
            if rule["category"] == row["category"] and seen[row["customer"]] >= rule["orders"]
        ]
        percent, rule = max(percents, default=(0, 0))
        cents = row["cents"] * (100 - percent) // 100
        priced.append(
            {"id": row["id"], "customer": row["customer"], "cents": cents, "discount": rule}
        )
        names = [rule["label"] for rule in given["campaigns"] if CAMPAIGNS[rule["label"]](row)]
        if names:
            labelled.append({"id": row["id"], "campaigns": names})
    assert bench.bag("priced-orders") == bag(priced)
    assert bench.bag("campaign-orders") == bag(labelled)
    [letter] = bench.read("dead-letters")
    assert (letter["code"], letter["expression"]) == ("BAD_RULE", "amount > 3")
    assert {row["discount"] for row in priced} == {0, 1, 2, 3}
