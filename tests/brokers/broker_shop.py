"""The online store on a real broker: what went in and what came out, as a reader sees it."""

from __future__ import annotations

import contextlib
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from shop import JOB, OUTPUTS, SHAPE, Shop
from store_reference import StoreReference, canonical

from headgate.connectors.contract.setup import SetupOptions
from headgate.jobs.sandbox.store import StoreOptions, produce_store
from headgate.jobs.topics.setup import set_up

DEAD_LETTERS = "dead-letters"
PARTITIONS = 4

Made = TypeVar("Made", bound="BrokerShop")


class ShopBroker(Protocol):
    """What a store asks of a broker."""

    @property
    def url(self) -> str:
        """What `--on` takes."""

    def values(self, topic: str) -> Sequence[bytes | None]:
        """Return the value of every record that a reader sees."""

    def changes(self, topic: str) -> list[tuple[bytes, bytes | None]]:
        """Return the key and the value of every record, in the order of each partition."""

    def marks(self, topic: str) -> list[str]:
        """Return what every record says of where it came from."""

    def kill(self) -> None:
        """End it as a power failure would."""

    def start(self) -> object:
        """Start it where it does not run."""


class BrokerShop(Shop):
    """A store whose topics are on a broker that no other store has."""

    def __init__(self, folder: Path, broker: ShopBroker) -> None:
        super().__init__(folder)
        self.broker = broker
        self.crashes = folder / "crashes"
        self.crashes.mkdir(parents=True)
        self.environment["HEADGATE_CRASH_DIR"] = str(self.crashes)

    @property
    def on(self) -> str:
        return self.broker.url

    def set_up(self) -> None:
        """Make the topics of the flow."""
        set_up(self.flow, self.on, SetupOptions(partitions=PARTITIONS))

    def produce(self, number: int, orders: int, **more: Any) -> None:
        shape: dict[str, Any] = {**SHAPE, **more}
        produce_store(self.on, StoreOptions(round=number, orders=orders, **shape))

    def output(self, name: str) -> Counter[str]:
        return Counter(canonical(json.loads(value)) for value in self.values(name))

    def values(self, topic: str) -> list[bytes]:
        """Return the values that a reader sees, without those of records that have none."""
        return [value for value in self.broker.values(topic) if value is not None]

    def reference(self) -> StoreReference:
        reference = StoreReference()
        for table in ("users", "items"):
            reference.take_table(table, self.broker.changes(table))
        reference.take_orders(self.values("orders"))
        return reference

    def count_letters(self) -> int:
        return len(self.broker.values(DEAD_LETTERS))

    def assert_nothing_lost(self) -> None:
        """Every order is in its output at least once."""
        reference = self.reference()
        for name in OUTPUTS:
            lost = reference.outputs[name] - self.output(name)
            assert not lost, f"{name}: {lost.total()} lost, such as {next(iter(lost))}"
        assert self.count_letters() >= reference.dead.total()

    def kill_children(self, kills: int, moments: random.Random) -> None:
        """Kill the child again and again, each time once it has been started anew."""
        for number in range(kills):
            self.wait_until(lambda: bool(self.status().get("child")))
            before = self.status()["attempt"]
            # A third of the moments lie in the start of an attempt, the rest amid batches.
            if number % 3 != 2:
                self.wait_until(self.is_running)
            time.sleep(moments.uniform(0.2, 3.0))
            self.kill_child()
            self.wait_for_attempt_after(before)

    def wait_for_a_batch(self) -> None:
        """Wait until one more batch has been committed than now."""
        before = self._last_commit()
        self.wait_until(lambda: self._last_commit() > before)

    def _last_commit(self) -> int:
        # The status has it wherever the checkpoint is, and nothing until a supervisor's first one.
        batch = self.status().get("batch")
        return -1 if batch is None else int(batch)

    def reach(self, point: str) -> None:
        """Have the job do at a point what is asked for there, once, and wait until it got there.

        Args:
            point: The name of a crash point, with `.fail` behind it for a task that only fails.
        """
        file = self.crashes / point
        file.touch()
        self.wait_until(lambda: not file.exists())

    @contextlib.contextmanager
    def holding(self, point: str) -> Iterator[Path]:
        """Let the job wait at a point until the block ends; it yields the file that says so."""
        hold, held = (self.crashes / f"{point}.{end}" for end in ("hold", "held"))
        held.unlink(missing_ok=True)
        hold.touch()
        try:
            yield held
        finally:
            hold.unlink()

    def failed_tasks(self) -> list[str]:
        """Return the points at which tasks failed that were asked to."""
        return re.findall(r"Lost task .* failed at ([a-z-]+), as a test", self.spark_log())

    def spark_log(self) -> str:
        """Return what Spark has said in all attempts."""
        logs = self.home / "jobs" / JOB / "logs"
        return "".join(
            file.read_text(errors="replace") for file in logs.iterdir() if file.is_file()
        )

    def lineages(self, topic: str) -> Counter[str]:
        """Return how many records of an output each run has written."""
        return Counter(mark.split("/")[0] for mark in self.broker.marks(topic))


def served(shop: Made) -> Iterator[Made]:
    """Give a shop with its first orders, and end its job."""
    try:
        shop.set_up()
        shop.produce(0, 3_000)
        yield shop
    finally:
        if shop.supervisor is not None and shop.supervisor.poll() is None:
            shop.kill_supervisor()
