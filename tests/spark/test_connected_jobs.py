"""Connected streams in whole jobs: restored at other parallelism, killed, carried as Parquet."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import Bench, bag
from test_killed_processes import kill_after

from headgate import Context, Flow, KeyedCoProcess, ListOf, Timer, Value
from headgate.jobs.checkpoints.portable import take_portable
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.state.client import StateDesk

JOB = "matching"
BASE = 1_767_258_000_000
MINUTE = 60_000


@dataclass
class Order:
    id: int
    price: float
    at: int


@dataclass
class Payment:
    orderId: int
    paid: float
    at: int


@dataclass
class Paid:
    id: int
    price: float
    paid: list[float]


class Match(KeyedCoProcess[Order, Payment, Paid]):
    """Emits an order once two payments are there; what it says depends on no order of arrival."""

    order: Value[Order]
    paid: ListOf[float]

    def on_left(self, order: Order, ctx: Context[Paid]) -> None:
        self.order.set(order)
        ctx.timers.at(order.at + MINUTE)
        self._tell(ctx)

    def on_right(self, payment: Payment, ctx: Context[Paid]) -> None:
        self.paid.append(payment.paid)
        self._tell(ctx)

    def on_timer(self, timer: Timer, ctx: Context[Paid]) -> None:
        ctx.side("timers").emit({"id": ctx.key, "at": timer.ms})

    def _tell(self, ctx: Context[Paid]) -> None:
        order = self.order.get()
        if order is not None and len(self.paid) == 2:
            ctx.emit(Paid(order.id, order.price, sorted(self.paid)))


class Counting(Match):
    """The same with one more state."""

    calls: Value[int]

    def on_right(self, payment: Payment, ctx: Context[Paid]) -> None:
        self.calls.set(self.calls.get(0) + 1)
        super().on_right(payment, ctx)


def matching(function: Match | None = None) -> Flow:
    flow = Flow(JOB)
    late = {"event_time": "at", "out_of_orderness": "1h"}
    orders, payments = (
        flow.stream("orders", Order, **late),
        flow.stream("payments", Payment, **late),
    )
    both = orders.key_by("id").connect(payments.key_by("orderId"))
    made = both.process("match", function or Match())
    made.out.to("paid")
    made.side("timers", schema="id BIGINT, at BIGINT").to("timers")
    return flow


@dataclass
class Traffic:
    """Orders with two payments each, of which some come long before and some long after."""

    orders: list[dict[str, Any]]
    payments: list[dict[str, Any]]

    @classmethod
    def drawn(cls, draw: random.Random, many: int) -> Traffic:
        orders = [{"id": n, "price": n * 1.5, "at": BASE + n * 1000} for n in range(many)]
        payments = [
            {"orderId": n, "paid": n + part / 4, "at": BASE + n * 1000 + draw.randint(-500, 500)}
            for n in range(many)
            for part in (1, 2)
        ]
        for rows in (orders, payments):
            # Not far: what is late at the watermark is still matched, but its timer fires at once.
            for place in range(len(rows)):
                other = min(len(rows) - 1, place + draw.randint(0, 300))
                rows[place], rows[other] = rows[other], rows[place]
        return cls(orders, payments)

    def put(self, bench: Bench, draw: random.Random, share: float) -> None:
        """Publish the next part of both streams, in files of random sizes."""
        for topic, rows in (("orders", self.orders), ("payments", self.payments)):
            count = int(len(rows) * share)
            part = rows[:count]
            del rows[:count]
            while part:
                size = draw.randint(20, 120)
                bench.put(topic, part[:size])
                del part[:size]


def check(bench: Bench, many: int, prices: Mapping[int, float] = MappingProxyType({})) -> None:
    """Compare the outputs with every order, its payments and its timer.

    Args:
        prices: The prices that were changed, by order.
    """
    paid = [
        {"id": n, "price": prices.get(n, n * 1.5), "paid": [n + 0.25, n + 0.5]} for n in range(many)
    ]
    assert bench.bag("paid") == bag(paid)
    timers = [{"id": n, "at": BASE + n * 1000 + MINUTE} for n in range(many)]
    assert bench.bag("timers") == bag(timers)
    assert bench.read("dead-letters") == []


@pytest.mark.long
def test_state_of_two_streams_is_read_restored_and_carried_as_parquet(
    bench: Bench, seed: int
) -> None:
    draw, many = random.Random(seed), 400
    traffic = Traffic.drawn(draw, many)
    traffic.put(bench, draw, 0.4)
    bench.run(matching(), parallelism=2, max_batch=8000)
    read_state(bench)
    traffic.put(bench, draw, 0.5)
    # Another query takes over the state by uid, with one more state declared.
    bench.run(matching(Counting()), restore_from="latest", parallelism=3, max_batch=8000)

    taken = take_portable(JobFolder(bench.home, JOB), to=bench.root / "taken")
    folder = taken.folder / "state" / "match"
    rows = pq.read_table(folder).to_pylist()
    assert taken.rows == {"match": len(rows)}
    assert "expires" not in rows[0]
    # Any tool may change it: an order that is not paid yet gets another price.
    row = next(row for row in rows if row["row"]["order"] and len(row["row"]["paid"]) < 2)
    changed = int(row["key"])
    row["row"]["order"]["price"] = -1.0
    schema = pq.read_schema(next(folder.glob("*.parquet")))
    for file in folder.glob("*.parquet"):
        file.unlink()
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "edited.parquet")

    traffic.put(bench, draw, 1)
    restored = matching(Counting())
    bench.run(restored, restore_from=str(taken.folder), parallelism=1, drain=True)
    check(bench, many, {changed: -1.0})


def read_state(bench: Bench) -> None:
    """Compare single keys and SQL with what the records say."""
    orders = {row["id"]: row for row in read_all(bench, "orders")}
    payments = read_all(bench, "payments")
    desk = StateDesk(bench.home)
    try:
        found = desk.query(
            JOB, "SELECT id, `order`.price, coalesce(paid_size, 0) FROM match", limit=1000
        )
        paid = [row["orderId"] for row in payments]
        assert {row[0]: row[1:] for row in found.rows} == {
            n: (orders[n]["price"] if n in orders else None, paid.count(n))
            for n in {*orders, *paid}
        }
        number = next(iter(orders))
        value: Any = desk.look_up(JOB, "match", str(number)).value
        assert value["order"] == orders[number]
        assert (value["paid_size"] or 0) == paid.count(number)
    finally:
        desk.close()
    [operator] = FolderHome(bench.home).operators(JOB).operators
    assert (operator.kind, operator.keys) == ("co-process", ("id",))
    nodes = {node.id: node for node in FolderHome(bench.home).graph(JOB).nodes}
    assert nodes["match"].facts.records_in == len(orders) + len(payments)


def read_all(bench: Bench, topic: str) -> list[Any]:
    """Return the records of an input."""
    return [
        json.loads(line)
        for file in sorted((bench.topics / topic).glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]


@pytest.mark.long
def test_kills_lose_and_duplicate_no_match(bench: Bench, seed: int) -> None:
    draw, many = random.Random(seed), 2400
    traffic = Traffic.drawn(draw, many)
    file: Path = bench.flow_file(matching())
    for parallelism in (1, 3, 5):
        traffic.put(bench, draw, 0.3)
        kill_after(bench, file, JOB, draw.randint(2, 3))
        bench.run(file, max_batch=9000)
        bench.run(file, restore_from="latest", parallelism=parallelism, max_batch=9000)
    traffic.put(bench, draw, 1)
    bench.run(file, max_batch=9000, drain=True)
    check(bench, many)
