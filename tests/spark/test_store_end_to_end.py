"""The online store's flow from the command line, against a reference of plain Python."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from store_reference import StoreReference, canonical, lines_of

FLOW = Path(__file__).parents[2] / "examples" / "orders" / "flow.py"
OUTPUTS = ("enriched-orders", "missing-users", "missing-items")


class Store:
    """A store in a folder of its own, driven by the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topics = folder / "topics"

    def produce(self, *flags: str) -> dict[str, Any]:
        return self._headgate("produce", "store", *flags)

    def run(self, *flags: str) -> dict[str, Any]:
        home = ["--home", str(self.folder / "home"), "--until-caught-up", "--batch-every", "0s"]
        return self._headgate("run", str(FLOW), *home, *flags)

    def output(self, name: str) -> Counter[str]:
        return Counter(canonical(json.loads(line)) for line in lines_of(self.topics / name))

    def dead_letters(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines_of(self.topics / "dead-letters")]

    def _headgate(self, *words: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "headgate", *words, "--json"]
        command += ["--on", f"files:{self.topics}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return last


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def assert_equal_outputs(store: Store, reference: StoreReference) -> None:
    for name in OUTPUTS:
        found, wanted = store.output(name), reference.outputs[name]
        lost, doubled = wanted - found, found - wanted
        assert not lost, f"{name}: {lost.total()} rows are missing, such as {next(iter(lost))}"
        assert not doubled, f"{name}: {doubled.total()} too many, such as {next(iter(doubled))}"
    raw = Counter(base64.b64decode(letter["raw"]) for letter in store.dead_letters())
    assert raw == reference.dead


@pytest.mark.parametrize(
    ("orders", "users"), [(20_000, 11_717), pytest.param(200_000, 117_178, marks=pytest.mark.long)]
)
def test_orders_give_what_plain_python_gives_through_rounds_of_updates(
    store: Store, orders: int, users: int
) -> None:
    reference = StoreReference()
    seed = ["--seed", "11", "--users", str(users), "--items", "2198", "--unknown", "0.01"]
    store.produce(*seed, "--orders", str(orders), "--bad", "0.001")
    reference.take(store.topics)
    first = store.run()
    assert_equal_outputs(store, reference)
    assert first["inputs"] == {"orders": orders, "users": users, "items": 2_198}
    # Every input is accounted for: an order is in one output, or it is a dead letter.
    assert sum(first["outputs"].values()) == orders
    assert reference.dead.total() == first["outputs"]["dead-letters"] == orders // 1000

    for number in ("1", "2"):
        rounds = ["--round", number, "--updates", str(users // 15), "--deletes", "0.2"]
        store.produce(*seed, *rounds, "--orders", str(orders // 10), "--bad", "0.002")
        reference.take(store.topics)
        again = store.run()
        assert again["resumed_from"] is not None
        assert again["inputs"]["orders"] == orders // 10
        assert_equal_outputs(store, reference)
    missed = reference.outputs["missing-users"].total()
    assert missed > orders * 0.006, f"deleted users are missed, not {missed}"


def test_new_orders_are_enriched_from_state_alone_when_the_tables_topics_are_emptied(
    store: Store,
) -> None:
    reference = StoreReference()
    shape = ["--users", "5000", "--items", "300"]
    store.produce(*shape, "--orders", "10000")
    reference.take(store.topics)
    store.run()
    for table in ("users", "items"):
        for part in (store.topics / table).glob("part-*"):
            shutil.rmtree(part)
    store.produce(*shape, "--round", "1", "--orders", "10000")
    reference.take(store.topics)
    again = store.run()
    assert again["inputs"] == {"orders": 10_000, "users": 0, "items": 0}
    assert again["state_rows"] == {"with-user": 5_000, "with-item": 300}
    assert_equal_outputs(store, reference)
    assert reference.outputs["enriched-orders"].total() > 19_000
