"""The online store's flow against a reference of plain Python.

The tutorial about the store runs the same flow from the command line.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench import Bench
from store_reference import StoreReference, canonical, lines_of

from headgate.jobs.sandbox.store import StoreOptions, produce_store
from headgate.jobs.values import JobSnapshot

FLOW = Path(__file__).parents[2] / "examples" / "orders" / "flow.py"
OUTPUTS = ("enriched-orders", "missing-users", "missing-items")


class Store:
    """A store in a folder of its own, whose jobs share the session of the tests."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.topics = bench.topics

    def produce(self, **shape: Any) -> None:
        produce_store(f"files:{self.topics}", StoreOptions(**shape))

    def run(self) -> JobSnapshot:
        return self.bench.run(FLOW)

    def output(self, name: str) -> Counter[str]:
        return Counter(canonical(json.loads(line)) for line in lines_of(self.topics / name))

    def dead_letters(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines_of(self.topics / "dead-letters")]


@pytest.fixture
def store(bench: Bench) -> Store:
    return Store(bench)


def assert_equal_outputs(store: Store, reference: StoreReference) -> None:
    for name in OUTPUTS:
        found, wanted = store.output(name), reference.outputs[name]
        lost, doubled = wanted - found, found - wanted
        assert not lost, f"{name}: {lost.total()} rows are missing, such as {next(iter(lost))}"
        assert not doubled, f"{name}: {doubled.total()} too many, such as {next(iter(doubled))}"
    raw = Counter(base64.b64decode(letter["raw"]) for letter in store.dead_letters())
    assert raw == reference.dead


@pytest.mark.parametrize(
    ("orders", "users"), [(5_000, 2_929), pytest.param(200_000, 117_178, marks=pytest.mark.long)]
)
def test_orders_give_what_plain_python_gives_through_rounds_of_updates(
    store: Store, orders: int, users: int
) -> None:
    reference = StoreReference()
    shape = {"seed": 11, "users": users, "items": 2_198, "unknown": 0.01}
    store.produce(**shape, orders=orders, bad=0.002)
    reference.take(store.topics)
    first = store.run()
    assert_equal_outputs(store, reference)
    assert first.totals.inputs == {"orders": orders, "users": users, "items": 2_198}
    # Every input is accounted for: an order is in one output, or it is a dead letter.
    assert sum(first.totals.outputs.values()) == orders
    assert reference.dead.total() == first.totals.outputs["dead-letters"] == orders // 500

    for number in (1, 2):
        store.produce(
            **shape,
            round=number,
            updates=users // 15,
            deletes=0.2,
            orders=orders // 10,
            bad=0.002,
        )
        reference.take(store.topics)
        again = store.run()
        assert again.resumed_from is not None
        assert again.totals.inputs["orders"] == orders // 10
        assert_equal_outputs(store, reference)
    missed = reference.outputs["missing-users"].total()
    assert missed > orders * 0.006, f"deleted users are missed, not {missed}"


def test_new_orders_are_enriched_from_state_alone_when_the_tables_topics_are_emptied(
    store: Store,
) -> None:
    reference = StoreReference()
    shape = {"users": 2_000, "items": 300}
    store.produce(**shape, orders=3_000)
    reference.take(store.topics)
    store.run()
    for table in ("users", "items"):
        for part in (store.topics / table).glob("part-*"):
            shutil.rmtree(part)
    store.produce(**shape, round=1, orders=3_000)
    reference.take(store.topics)
    again = store.run()
    assert again.totals.inputs == {"orders": 3_000, "users": 0, "items": 0}
    assert again.totals.state_rows == {"with-user": 2_000, "with-item": 300}
    assert_equal_outputs(store, reference)
    assert reference.outputs["enriched-orders"].total() > 5_700
