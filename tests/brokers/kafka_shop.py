"""The online store on a real Kafka broker: what went in and what came out, as a reader sees it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import Message
from kafka_broker import KafkaBroker
from shop import OUTPUTS, SHAPE, Shop
from store_reference import StoreReference, canonical

from headgate.jobs.service import StoreOptions, produce_store
from headgate.jobs.setup import SetupOptions, set_up

DEAD_LETTERS = "dead-letters"
PARTITIONS = 4


class KafkaShop(Shop):
    """A store whose topics are on a broker that no other store has."""

    def __init__(self, folder: Path, broker: KafkaBroker) -> None:
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
        """Return the values of a topic's committed records."""
        return [value for value in self.broker.values(topic) if value is not None]

    def reference(self) -> StoreReference:
        reference = StoreReference()
        for table in ("users", "items"):
            reference.take_table(table, map(change_of, self.broker.read(table)))
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

    def lineages(self, topic: str) -> Counter[str]:
        """Return how many records of an output each run has written."""
        return Counter(lineage_of(message) for message in self.broker.read(topic))


def change_of(message: Message) -> tuple[bytes, bytes | None]:
    """Return a record of a table as its key and its row."""
    key, value = message.key(), message.value()
    assert key is not None
    return bytes(key), None if value is None else bytes(value)


def lineage_of(message: Message) -> str:
    """Return the run that wrote a record, as its header says."""
    place = dict(message.headers() or ())["headgate"]
    assert isinstance(place, bytes)
    return place.decode().split("/")[0]
