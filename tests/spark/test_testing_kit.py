"""The test kit for users: what `run_flow` returns is what a job writes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from bench import Bench, bag, refused

from headgate import Flow
from headgate.testing import run_flow
from headgate.windows import count, tumbling


@dataclass
class Priced:
    id: int
    price: Decimal
    at: datetime
    raw: bytes


def shop() -> Flow:
    flow = Flow("shop")
    orders = flow.stream("orders", "id BIGINT, user BIGINT, at BIGINT", event_time="at")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id")
    with_user = orders.enrich("with-user", users, on="user", into="row")
    with_user.matched.flat_map(
        "twice",
        lambda row: [{"id": row.id, "n": n, "name": row.row.name} for n in range(row.id % 3)],
        schema="id BIGINT, n BIGINT, name STRING",
    ).to("out")
    with_user.missing.to("missing")
    windows = orders.key_by("user").window("w", tumbling("1m")).aggregate(orders=count())
    windows.updates.select("user", "window_start", "orders").to("counts")
    windows.late.to("late")
    orders.select("concat('order ', id) AS line").to("lines", format="text")
    return flow


def given() -> dict[str, list[Any]]:
    pick = random.Random(5)
    orders: list[Any] = [{"id": n, "user": pick.randrange(12), "at": n * 700} for n in range(300)]
    orders[7] = '{"id": "seven"}'
    users = [{"id": n % 10, "name": f"user {n}"} for n in range(30)]
    return {"orders": orders, "users": [*users, {"id": 3, "$deleted": True}]}


@pytest.mark.parametrize("batches", [1, 4])
def test_a_flow_in_memory_gives_what_a_job_gives(bench: Bench, batches: int) -> None:
    rows = run_flow(shop(), given(), batches=batches)
    for topic, records in given().items():
        bench.put(topic, records)
    bench.run(shop(), parallelism=1, drain=True)
    for output in ("out", "missing", "counts", "late"):
        assert bag(rows[output]) == bench.bag(output)
    assert sorted(rows["lines"]) == sorted(f"order {n}" for n in range(300) if n != 7)
    (letter,) = rows["dead-letters"]
    assert (letter["code"], letter["offset"], letter["job"]) == ("WRONG_TYPE", 7, "shop")


def test_records_may_be_dataclasses_of_every_type() -> None:
    flow = Flow("priced")
    flow.stream("in", Priced).to("out")
    at = datetime(2026, 1, 2, tzinfo=UTC)
    row = Priced(1, Decimal("1234567890.123456789012345678"), at, b"\x00\xff")
    out = run_flow(flow, {"in": [row]})
    assert out["dead-letters"] == []
    assert out["out"] == [
        {
            "id": 1,
            "price": pytest.approx(1234567890.1234567),
            "at": "2026-01-02T00:00:00Z",
            "raw": "AP8=",
        }
    ]


def test_what_cannot_be_run_in_memory_is_refused_by_name() -> None:
    with refused("INPUT_UNKNOWN"):
        run_flow(shop(), {"order": []})
    flow = Flow("frames")
    flow.stream("in", "n BIGINT").transform("some_module:function").to("out")
    with refused("MEMORY_UNSUPPORTED"):
        run_flow(flow, {"in": []})
    with refused("BAD_SETTING"):
        run_flow(shop(), {}, batches=0)


def test_a_failing_function_fails_the_call_by_name() -> None:
    flow = Flow("failing")
    flow.stream("in", "n BIGINT").map("f", lambda row: 1 / row.n, schema="n BIGINT").to("out")
    with refused("FUNCTION_FAILED") as error:
        run_flow(flow, {"in": [{"n": 0}]})
    assert "ZeroDivisionError" in error.value.message


def test_an_output_without_rows_is_there() -> None:
    assert run_flow(shop(), {}) == {
        name: [] for name in ("out", "missing", "counts", "late", "lines", "dead-letters")
    }
