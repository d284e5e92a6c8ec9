"""Pulsar under fire: what a reader finds, whatever was killed when."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_shop import BrokerShop, served
from pulsar_broker import PulsarBroker
from shop import JOB, OUTPUTS, Production, freeze, kill
from wide_shop import WideShop

# Where rows are half written, and where they all are; the others are the same on every log.
CRASHES = ("in-transaction", "task-committed")


@pytest.fixture
def shop(tmp_path: Path, own_pulsar: PulsarBroker) -> Iterator[BrokerShop]:
    yield from served(BrokerShop(tmp_path, own_pulsar))


@pytest.fixture
def wide_shop(tmp_path: Path, own_pulsar: PulsarBroker) -> Iterator[WideShop]:
    yield from served(WideShop(tmp_path, own_pulsar))


def test_a_child_killed_at_random_and_at_named_moments_loses_and_doubles_nothing_on_pulsar(
    wide_shop: WideShop, broker_kills: int, seed: int
) -> None:
    shop = wide_shop
    # In `make test` the random kills are those of Kafka and of embedded topics.
    random_kills = broker_kills - 1
    shop.try_tasks(3)
    shop.start()
    with Production(shop, orders=100):
        shop.wait_until(shop.is_running)
        # Tasks that fail run again within their batch; they end no attempt of the job.
        for point in CRASHES:
            shop.reach(f"{point}.fail")
        assert not shop.events("FAILURE")
        shop.kill_children(random_kills, random.Random(seed))
        for point in CRASHES:
            shop.wait_until(shop.is_running)
            before = shop.status()["attempt"]
            shop.reach(point)
            shop.wait_for_attempt_after(before)
    shop.drain()
    shop.assert_exactly_once()
    assert shop.failed_tasks() == list(CRASHES)
    assert len(shop.events("FAILURE")) == random_kills + len(CRASHES)


@pytest.mark.long
def test_a_pulsar_broker_that_is_killed_and_started_again_costs_nothing(
    shop: BrokerShop, own_pulsar: PulsarBroker, kills: int, seed: int
) -> None:
    """Then a run is restored, and enriches from state: the topics of its tables are empty."""
    moments = random.Random(seed)
    shop.start("--checkpoint-every", "0s", "--retain", "100")
    shop.wait_until(lambda: bool(shop.output("enriched-orders")))
    restarts = max(1, kills // 8)
    for number in range(1, 1 + restarts):
        shop.wait_until(shop.is_running)
        shop.produce(number, 2_000)
        time.sleep(moments.uniform(0.0, 1.5))
        shop.broker.kill()
        time.sleep(moments.uniform(0.0, 3.0))
        shop.broker.start()
    shop.wait_until(shop.is_running)
    shop.drain()
    shop.assert_exactly_once()
    checkpoint, first = shop.headgate("show", JOB)["checkpoint"], shop.status()["lineage"]
    before = {name: shop.output(name) for name in OUTPUTS}

    shop.start()
    shop.produce(1 + restarts, 3_000)
    shop.drain()
    shop.assert_exactly_once()
    after = {name: shop.output(name) for name in OUTPUTS}

    for table in ("users", "items"):
        own_pulsar.truncate(table)
        assert own_pulsar.values(table) == []
    shop.start("--from", checkpoint)
    shop.drain()
    lineage = shop.status()["lineage"]
    assert lineage != first
    for name in OUTPUTS:
        again = after[name] - before[name]
        assert again.total() > 0, name
        # The first run's rows are there as they were; those behind the checkpoint once more.
        assert shop.output(name) == after[name] + again, name
        assert shop.lineages(name)[lineage] == again.total()


@pytest.mark.long
def test_a_run_that_was_frozen_writes_nothing_beside_one_restored_in_its_place(
    shop: BrokerShop,
) -> None:
    shop.start()
    shop.wait_until(shop.is_running)
    shop.wait_until(lambda: bool(shop.output("enriched-orders")))
    first = shop.status()["lineage"]
    with shop.holding("state-committed") as held:
        shop.produce(1, 2_000)
        shop.wait_until(held.exists)
        child, driver = int(shop.status()["child"]), shop.jvm()
        freeze(shop, driver)
        freeze(shop, child)
    try:
        shop.kill_supervisor()
        # The frozen driver holds the lock; on another machine its successor would not see it.
        (shop.home / "jobs" / JOB / "driver.lock").unlink()
        # The open batch has written nothing: its rows are those of the new run.
        shop.start("--from", "latest")
        shop.wait_until(shop.is_running)
        assert shop.status()["lineage"] != first
        shop.wait_until(lambda: sum(shop.output(name).total() for name in OUTPUTS) > 4_500)
        os.kill(driver, signal.SIGCONT)
        # Its client asks again and again for names that are taken.
        shop.wait_until(lambda: "is already connected to topic" in shop.spark_log())
        shop.produce(2, 1_000)
        shop.wait_until(lambda: sum(shop.output(name).total() for name in OUTPUTS) > 5_500)
    finally:
        kill(child)
        kill(driver)
    shop.drain()
    shop.assert_exactly_once()
    assert set(shop.lineages("enriched-orders")) == {first, shop.status()["lineage"]}
