"""Dead letters of a real job: listed, shown, and replayed after the flow was fixed, each once."""

from __future__ import annotations

import json
from typing import Any

from bench import Bench, bag
from typer.testing import CliRunner

from headgate import Flow
from headgate.cli.app import app

GOOD: list[dict[str, Any]] = [{"n": n, "price": n * 10} for n in range(1, 40)]
FRACTIONS: list[dict[str, Any]] = [{"n": n, "price": n + 0.5} for n in range(40, 45)]
ZERO: dict[str, Any] = {"n": 0, "price": 3}
# Of this one, `space` would make more than memory holds.
HUGE: dict[str, Any] = {"n": 2**31 - 1, "price": 3}
NO_JSON = '{"n": 7, "price": '


def declare(price: str, share: str) -> Flow:
    flow = Flow("prices")
    orders = flow.stream("orders", f"n BIGINT NOT NULL, price {price} NOT NULL")
    orders.select("n", f"{share} AS share").to("shares")
    return flow


def expected(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the fixed flow makes of a record, in plain Python."""
    n = record["n"]
    return {"n": n, "share": None if n == 0 else record["price"] / n}


def ask(bench: Bench, *args: str, exit_code: int = 0) -> Any:
    command = ["dead-letters", "prices", *args, "--home", str(bench.home), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == exit_code, result.stderr
    return json.loads(result.stdout)


def test_records_arrive_once_when_they_are_replayed_after_a_fix(bench: Bench) -> None:
    bench.put("orders", [*GOOD[:20], NO_JSON, *FRACTIONS[:3], ZERO, HUGE])
    bench.put("orders", [*FRACTIONS[3:], *GOOD[20:]])
    bench.run(declare("BIGINT", "price / n + 0 * length(space(CAST(n AS INT)))"))
    assert len(bench.read("shares")) == len(GOOD)

    found = ask(bench, "list")
    counts = {(each["topic"], each["reason"]): each["count"] for each in found["counts"]}
    assert counts == {
        ("orders", "BAD_JSON"): 1,
        ("orders", "WRONG_TYPE"): len(FRACTIONS),
        ("orders", "EXPRESSION_FAILED"): 2,
    }
    (broken,) = ask(bench, "list", "--reason", "BAD_JSON")["letters"]
    assert ask(bench, "show", broken["id"])["text"] == NO_JSON

    # Before the next start, so that the second run reads it all.
    done = ask(bench, "replay", "--reason", "WRONG_TYPE")
    assert (done["sent"], done["refused"]) == (len(FRACTIONS), 0)
    rest = ask(bench, "replay", "--all")
    assert (rest["sent"], rest["skipped"]) == (3, len(FRACTIONS))
    assert ask(bench, "replay", "--all")["sent"] == 0

    bench.run(declare("DOUBLE", "try_divide(price, n)"))
    assert bench.bag("shares") == bag(expected(each) for each in [*GOOD, *FRACTIONS, ZERO, HUGE])
    again = [each for each in ask(bench, "list")["letters"] if each["replayed_at"] is None]
    assert [each["text"] for each in again] == [NO_JSON]
    assert again[0]["id"] != broken["id"]
