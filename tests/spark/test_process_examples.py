"""The examples with keyed functions: their outputs are what plain Python makes."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench import Bench, bag

EXAMPLES = Path(__file__).parents[2] / "examples"
MINUTE = 60_000
Row = dict[str, Any]


def lines(name: str) -> list[Row]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text().splitlines()]


def payments() -> list[Row]:
    draw = random.Random(22)
    at = 1_767_300_000_000
    given = lines("fraud/payments.jsonl")
    for number in range(100, 700):
        at += draw.randint(100, 40_000)
        amount = draw.choice([0.5, 0.9, 20.0, 499.0, 500.0, 900.0])
        shop = draw.choice(["bakery", "jeweller", "kiosk"])
        given.append(
            {"id": number, "card": draw.randint(1, 9), "shop": shop, "amount": amount, "at": at}
        )
    return given


def alerts(given: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return what is an alert, and what is a first visit."""
    made, firsts = [], []
    before: dict[int, list[Row]] = defaultdict(list)
    for row in given:
        mine = before[row["card"]]
        named = {"card": row["card"], "payment": row["id"]}
        small = next((old for old in reversed(mine) if old["amount"] < 1.0), None)
        if small and row["at"] - small["at"] <= MINUTE and row["amount"] >= 500.0:
            made.append({**named, "reason": "large after small", "amount": row["amount"]})
        if row["shop"] not in {old["shop"] for old in mine}:
            firsts.append({"card": row["card"], "shop": row["shop"], "payment": row["id"]})
        mine.append(row)
        recent = [old for old in mine if row["at"] - old["at"] <= 10 * MINUTE]
        if len(recent) == 4:
            total = round(sum(old["amount"] for old in recent), 2)
            made.append({**named, "reason": "many in ten minutes", "amount": total})
    return made, firsts


def test_alerts_about_payments_are_those_of_plain_python(bench: Bench) -> None:
    given = payments()
    for begin in range(0, len(given), 50):
        bench.put("payments", given[begin : begin + 50])
    bench.run(EXAMPLES / "fraud" / "flow.py", parallelism=2, max_batch=8000)
    made, firsts = alerts(given)
    assert bench.bag("alerts") == bag(made)
    assert bench.bag("first-visits") == bag(firsts)
    assert len({row["reason"] for row in made}) == 2


def views() -> list[Row]:
    draw = random.Random(23)
    given, at = lines("sessions/views.jsonl"), 1_767_300_000_000
    for _ in range(600):
        at += draw.choice([1000, 30_000, 900_000])
        visitor = draw.choice(["ada", "bob", "cy", "di", "eve"])
        given.append({"visitor": visitor, "page": draw.choice("abc"), "at": at})
    return given


def test_sessions_are_those_of_plain_python(bench: Bench) -> None:
    given = views()
    for begin in range(0, len(given), 40):
        bench.put("views", given[begin : begin + 40])
    bench.run(EXAMPLES / "sessions" / "flow.py", parallelism=2, max_batch=8000, drain=True)
    wanted: list[Row] = []
    by_visitor: dict[str, list[Row]] = defaultdict(list)
    for view in sorted(given, key=lambda row: row["at"]):
        by_visitor[view["visitor"]].append(view)
    for visitor, mine in by_visitor.items():
        parts: list[list[Row]] = [[]]
        for view in mine:
            if parts[-1] and view["at"] - parts[-1][-1]["at"] > 30 * MINUTE:
                parts.append([])
            parts[-1].append(view)
        wanted += [
            {
                "visitor": visitor,
                "first": part[0]["at"],
                "last": part[-1]["at"],
                "views": len(part),
                "pages": list(Counter(view["page"] for view in part)),
            }
            for part in parts
        ]
    assert bench.bag("sessions") == bag(wanted)
    assert len(wanted) > 50
