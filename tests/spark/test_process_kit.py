"""Processes in `run_flow`: timers by the clock, and crashes that leave no trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from headgate import Context, Flow, HeadgateError, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate.testing import CrashAt, run_flow


@dataclass
class Order:
    user: str
    price: float


@dataclass
class Total:
    user: str
    total: float
    orders: int


class Totals(KeyedProcess[Order, Total]):
    total: Value[float]
    prices: ListOf[float]
    seen: MapOf[str, int]

    def on_event(self, order: Order, ctx: Context[Total]) -> None:
        self.total.set(self.total.get(0.0) + order.price)
        self.prices.append(order.price)
        self.seen["orders"] = self.seen.get("orders", 0) + 1
        ctx.timers.after("10s")
        ctx.emit(Total(ctx.key, self.total.get(0.0), len(self.prices)))

    def on_timer(self, timer: Timer, ctx: Context[Total]) -> None:
        ctx.emit(Total(f"{ctx.key} at {timer.ms - 1_767_225_600_000}", 0.0, self.seen["orders"]))


def totals() -> Flow:
    flow = Flow("sums")
    orders = flow.stream("orders", Order)
    orders.key_by("user").process("totals", Totals()).out.to("sums")
    return flow


ORDERS = [Order(f"u{n % 3}", float(n)) for n in range(60)]


def bag(rows: list[Any]) -> list[str]:
    return sorted(map(str, rows))


def test_a_crash_changes_no_row_of_a_process() -> None:
    whole = run_flow(totals(), {"orders": ORDERS}, batches=5, every="4s", idle="1m")
    crashed = run_flow(
        totals(),
        {"orders": ORDERS},
        batches=5,
        every="4s",
        idle="1m",
        faults=[CrashAt(batch=1), CrashAt(batch=3), CrashAt(batch=5)],
    )
    assert bag(whole["sums"]) == bag(crashed["sums"])
    # Each order, and a timer of each user ten seconds behind each of the five batches.
    assert len(whole["sums"]) == 60 + 15


def test_timers_fire_at_their_time_in_an_idle_flow() -> None:
    rows = run_flow(totals(), {"orders": ORDERS[:1]}, idle="11s")["sums"]
    assert [row["user"] for row in rows] == ["u0", "u0 at 10000"]
    rows = run_flow(totals(), {"orders": ORDERS[:1]}, idle="9s")["sums"]
    assert [row["user"] for row in rows] == ["u0"]


def test_a_crash_at_a_batch_that_is_not_there_is_refused() -> None:
    with pytest.raises(HeadgateError, match="cannot crash at batch 3") as error:
        run_flow(totals(), {"orders": ORDERS}, batches=2, faults=[CrashAt(batch=3)])
    assert error.value.code == "BAD_SETTING"


class Sorted(KeyedProcess[Order, Total]):
    """Writes each order to a side output, and to `out`, which nothing reads."""

    def on_event(self, order: Order, ctx: Context[Total]) -> None:
        row = Total(ctx.key, order.price, 1)
        ctx.side("cheap" if order.price < 30 else "dear").emit(row)
        ctx.emit(row)


def test_a_process_writes_to_side_outputs_alone() -> None:
    flow = Flow("sorted")
    made = flow.stream("orders", Order).key_by("user").process("sort", Sorted())
    made.side("cheap").to("cheap")
    made.side("dear").where("orders = 1").to("dear")
    rows = run_flow(flow, {"orders": ORDERS}, batches=3)
    assert {name for name, written in rows.items() if written} == {"cheap", "dear"}
    assert sorted(row["total"] for row in rows["cheap"]) == [float(n) for n in range(30)]
    assert sorted(row["total"] for row in rows["dear"]) == [float(n) for n in range(30, 60)]
