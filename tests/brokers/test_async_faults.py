"""Async calls on Kafka under fire: one answer for each order, whatever is killed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import located_flow
import pytest
from broker_shop import DEAD_LETTERS, PARTITIONS, BrokerShop
from kafka_broker import KafkaBroker
from located_service import Service, served
from shop import JOB, Production

OUTPUTS = ("located", "nowhere", "failed")


class AskingShop(BrokerShop):
    """A job that asks a service for each order; the service answers differently each time."""

    def __init__(self, folder: Path, broker: KafkaBroker, service: Service) -> None:
        super().__init__(folder, broker)
        self.service = service
        self.kafka = broker
        self._orders = 0

    def set_up(self) -> None:
        """Write the flow, and make its topics."""
        flow = self.folder / "flow"
        flow.mkdir()
        shutil.copy(located_flow.__file__, flow)
        self.flow = str(flow / "flow.py")
        Path(self.flow).write_text(
            "from located_flow import located\n"
            f"flow = located({self.service.url!r}, {JOB!r}, capacity=20)\n"
        )
        for name in ("orders", "zones", *OUTPUTS, DEAD_LETTERS):
            self.kafka.make_topic(name, partitions=PARTITIONS)
        zones = [{"zone": n, "name": f"zone {n}"} for n in range(3)]
        self.kafka.send("zones", [json.dumps(zone).encode() for zone in zones], partition=0)

    def produce(self, number: int, orders: int, **_: Any) -> None:  # noqa: ARG002
        """Write the next orders."""
        first, self._orders = self._orders + 1, self._orders + orders
        for partition in range(PARTITIONS):
            records = [
                json.dumps({"id": n, "note": f"order {n}"}).encode()
                for n in range(first, self._orders + 1)
                if n % PARTITIONS == partition
            ]
            self.kafka.send("orders", records, partition=partition)

    def assert_exactly_once(self) -> None:
        """Each order has one outcome, and the service gave it."""
        rows = {name: [json.loads(each) for each in self.values(name)] for name in OUTPUTS}
        answered = [*rows["located"], *rows["nowhere"]]
        ids = [row["id"] for row in (*answered, *rows["failed"])]
        assert sorted(ids) == list(range(1, self._orders + 1))
        for row in answered:
            assert row["answer"] in self.service.given[row["id"]]
        assert all(row["id"] % 11 == 0 for row in rows["failed"])
        assert not self.values(DEAD_LETTERS)


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker) -> Iterator[AskingShop]:
    with served(0.01) as service:
        made = AskingShop(tmp_path, own_kafka, service)
        made.set_up()
        made.produce(0, 500)
        yield made
        if made.supervisor is not None and made.supervisor.poll() is None:
            made.kill_supervisor()


@pytest.mark.long
def test_kills_lose_double_and_change_no_answer(shop: AskingShop, kills: int, seed: int) -> None:
    moments = random.Random(seed)
    shop.start()
    shop.wait_until(shop.is_running)
    # The service answers some 30 orders a second on a busy machine, with one core for all.
    with Production(shop, orders=15):
        for point in ("answers-recorded", "epoch-committed"):
            before = shop.status()["attempt"]
            shop.reach(point)
            shop.wait_for_attempt_after(before)
            shop.wait_for_a_batch()
        for _ in range(max(1, kills // 4)):
            shop.kill_children(1, moments)
            shop.wait_for_a_batch()
        shop.wait_until(shop.is_running)
    shop.drain()
    shop.assert_exactly_once()
