"""A keyed process on brokers under fire: drivers and Python workers are killed amid batches."""

from __future__ import annotations

import base64
import json
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import process_reference
import pytest
from broker_shop import DEAD_LETTERS, PARTITIONS, BrokerShop
from kafka_broker import KafkaBroker
from process_reference import Event, Row, drawn, expected
from pulsar_broker import PulsarBroker
from shop import JOB, Production, kill

OUTPUTS = ("told", "large", "timers")


class ProcessShop(BrokerShop):
    """A job with a keyed process that uses every kind of state, side outputs and timers."""

    def __init__(self, folder: Path, broker: KafkaBroker | PulsarBroker, seed: int) -> None:
        super().__init__(folder, broker)
        self.topics_of = broker
        self._seed = seed
        self._events: list[Event] = []

    def set_up(self, **outputs: Any) -> None:
        """Write the flow, and make its topics: outputs with one partition show their order.

        Args:
            outputs: How the broker makes the topics of outputs.
        """
        flow = self.folder / "flow"
        flow.mkdir()
        shutil.copy(process_reference.__file__, flow)
        self.flow = str(flow / "flow.py")
        Path(self.flow).write_text(
            f"from process_reference import everything\nflow = everything({JOB!r})\n"
        )
        self.topics_of.make_topic("events", partitions=PARTITIONS)
        for name in (*OUTPUTS, DEAD_LETTERS):
            self.topics_of.make_topic(name, **outputs)

    def produce(self, number: int, orders: int, **_: Any) -> None:  # noqa: ARG002
        """Write the next events; those of a key are in one partition."""
        events = drawn(self._seed, orders, first=len(self._events))
        values: dict[int, list[bytes]] = defaultdict(list)
        for event in events:
            values[event.key % PARTITIONS].append(json.dumps(vars(event)).encode())
        for partition, records in values.items():
            self.topics_of.send("events", records, partition=partition)
        self._events += events

    def kill_workers(self, moments: random.Random) -> None:
        """Kill Python workers at random moments until an attempt fails of it.

        A worker that is killed between two batches is replaced, and no attempt ends.
        """
        failures = len(self.events("FAILURE"))

        def failed() -> bool:
            time.sleep(moments.uniform(0.0, 0.1))
            for pid in workers_of(self.status().get("child")):
                kill(pid)
            return len(self.events("FAILURE")) > failures

        self.wait_until(failed)

    def assert_exactly_once(self) -> None:
        """A reader finds what plain Python makes of the events, in order for each key."""
        wanted = expected(self._events)
        for name, rows in zip(OUTPUTS, (wanted.told, wanted.large, wanted.timers), strict=True):
            found = by_key(json.loads(value) for value in self.values(name))
            by_reference = by_key(rows)
            assert found.keys() == by_reference.keys(), name
            # One key at a time: a difference of all rows would be shown for minutes.
            for key, of_key in found.items():
                assert of_key == by_reference[key], f"{name}: key {key}"
        letters = [json.loads(value) for value in self.values(DEAD_LETTERS)]
        failed = [json.loads(base64.b64decode(letter["raw"]))["n"] for letter in letters]
        assert sorted(failed) == wanted.letters
        assert {letter["code"] for letter in letters} == {"FUNCTION_FAILED"}


def by_key(rows: Iterable[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["key"]].append(row)
    return found


def workers_of(child: int | None) -> list[int]:
    """Return the Python workers of a job's child: they are children of its JVM."""
    parents: dict[int, int] = {}
    workers: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(folder.name)
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if b"headgate.functions.worker" in (folder / "cmdline").read_bytes():
                workers.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [pid for pid in workers if child and parents.get(parents[pid]) == child]


@pytest.fixture
def kafka_shop(tmp_path: Path, own_kafka: KafkaBroker, seed: int) -> Iterator[ProcessShop]:
    # The path of a worker's socket would be too long in there.
    folder = tmp_path / ("a-long-name-" * 8)
    folder.mkdir()
    yield from _serving(ProcessShop(folder, own_kafka, seed))


@pytest.fixture
def pulsar_shop(tmp_path: Path, own_pulsar: PulsarBroker, seed: int) -> Iterator[ProcessShop]:
    yield from _serving(ProcessShop(tmp_path, own_pulsar, seed), deduplicated=True)


def _serving(made: ProcessShop, **outputs: Any) -> Iterator[ProcessShop]:
    made.set_up(**outputs)
    made.produce(0, 1_000)
    yield made
    if made.supervisor is not None and made.supervisor.poll() is None:
        made.kill_supervisor()


# 40 kills take longer than a test may.
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_kills_of_drivers_and_workers_lose_double_and_reorder_nothing_on_kafka(
    kafka_shop: ProcessShop, many_kills: int, seed: int
) -> None:
    kill_and_drain(kafka_shop, many_kills, random.Random(seed))
    kafka_shop.assert_exactly_once()


@pytest.mark.long
def test_kills_of_drivers_and_workers_lose_double_and_reorder_nothing_on_pulsar(
    pulsar_shop: ProcessShop, kills: int, seed: int
) -> None:
    kill_and_drain(pulsar_shop, max(2, kills // 4), random.Random(seed))
    pulsar_shop.assert_exactly_once()


def kill_and_drain(shop: ProcessShop, kills: int, moments: random.Random) -> None:
    """Kill processes while events are produced: a third of them workers, the others drivers."""
    worker_kills = max(1, kills // 3)
    shop.start()
    with Production(shop, orders=60):
        for number in range(kills - worker_kills):
            shop.wait_for_a_batch()
            shop.kill_children(1, moments)
            if number < worker_kills:
                shop.wait_for_a_batch()
                shop.kill_workers(moments)
        shop.wait_until(shop.is_running)
    shop.drain()
    assert len(shop.events("FAILURE")) >= kills
