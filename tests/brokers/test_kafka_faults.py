"""Kafka under fire: what a reader of committed records finds, whatever was killed when."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_shop import BrokerShop, served
from kafka_broker import KafkaBroker
from shop import JOB, OUTPUTS, Production, freeze, kill
from wide_shop import WideShop

IN_TASKS = ("in-transaction", "state-committed", "task-committed")
# In each run, the JVM dies within a transaction in test_crashed_flows.py, and before a task commits
# in test_kafka_order.py.
CRASHES = ("task-committed", "epoch-committed")
ALL_CRASHES = (*IN_TASKS, "epoch-committed")


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker) -> Iterator[BrokerShop]:
    yield from served(BrokerShop(tmp_path, own_kafka))


@pytest.fixture
def wide_shop(tmp_path: Path, own_kafka: KafkaBroker) -> Iterator[WideShop]:
    yield from served(WideShop(tmp_path, own_kafka))


def test_a_child_killed_at_random_and_at_named_moments_loses_and_doubles_nothing_on_kafka(
    wide_shop: WideShop, broker_kills: int, seed: int
) -> None:
    """At the end the broker is killed, too, and started again."""
    shop, moments = wide_shop, random.Random(seed)
    crashes = CRASHES if broker_kills == 1 else ALL_CRASHES
    shop.try_tasks(3)
    shop.start()
    with Production(shop, orders=100) as production:
        shop.wait_until(shop.is_running)
        # Tasks that fail run again within their batch; they end no attempt of the job.
        for point in IN_TASKS:
            shop.reach(f"{point}.fail")
        assert not shop.events("FAILURE")
        shop.kill_children(broker_kills, moments)
        for point in crashes:
            shop.wait_until(shop.is_running)
            before = shop.status()["attempt"]
            shop.reach(point)
            shop.wait_for_attempt_after(before)
        shop.wait_until(shop.is_running)
    assert len(shop.events("FAILURE")) == broker_kills + len(crashes)
    _kill_broker(shop, production.rounds + 1, moments)
    shop.drain()
    shop.assert_exactly_once()
    assert shop.failed_tasks() == list(IN_TASKS)


def _kill_broker(shop: BrokerShop, number: int, moments: random.Random) -> None:
    """Kill the broker while the job reads a round of orders, and start it again."""
    shop.wait_until(shop.is_running)
    shop.produce(number, 2_000)
    time.sleep(moments.uniform(0.0, 1.5))
    shop.broker.kill()
    time.sleep(moments.uniform(0.0, 3.0))
    shop.broker.start()


@pytest.mark.long
def test_at_least_once_a_child_killed_at_random_moments_loses_nothing(
    shop: BrokerShop, kills: int, seed: int
) -> None:
    shop.start("--delivery", "at-least-once")
    with Production(shop):
        shop.kill_children(max(1, kills // 4), random.Random(seed))
    shop.drain()
    shop.assert_nothing_lost()


@pytest.mark.long
def test_a_broker_that_is_killed_and_started_again_costs_nothing(
    shop: BrokerShop, kills: int, seed: int
) -> None:
    moments = random.Random(seed)
    shop.start()
    for number in range(1, 1 + max(1, kills // 10)):
        _kill_broker(shop, number, moments)
    shop.wait_until(shop.is_running)
    shop.drain()
    shop.assert_exactly_once()


@pytest.mark.long
def test_an_attempt_that_was_frozen_in_a_transaction_writes_nothing_when_it_wakes(
    shop: BrokerShop,
) -> None:
    shop.start()
    shop.wait_until(shop.is_running)
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
        shop.start()
        shop.wait_until(shop.is_running)
        shop.wait_until(lambda: sum(shop.output(name).total() for name in OUTPUTS) > 4_500)
        os.kill(driver, signal.SIGCONT)
        shop.produce(2, 2_000)
        shop.wait_until(lambda: "FENCED" in shop.spark_log() or not _lives(driver))
    finally:
        kill(child)
        kill(driver)
    shop.drain()
    shop.assert_exactly_once()


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists()


@pytest.mark.long
def test_a_batch_that_readers_have_is_skipped_when_the_broker_has_forgotten_its_groups(
    shop: BrokerShop, own_kafka: KafkaBroker
) -> None:
    """Brokers forget the offsets of a group that was idle for a week."""
    shop.start("--restart", "none")
    shop.wait_until(shop.is_running)
    (shop.crashes / "epoch-committed").touch()
    shop.produce(1, 2_000)
    assert shop.supervisor is not None
    assert shop.supervisor.wait(timeout=120) != 0
    admin = own_kafka.admin()
    known = admin.list_consumer_groups().result(30).valid
    marks = [each.group_id for each in known if each.group_id.startswith(f"headgate.{JOB}.")]
    assert marks, "the epochs were in groups"
    for gone in admin.delete_consumer_groups(marks).values():
        gone.result(30)
    shop.start()
    shop.drain()
    shop.assert_exactly_once()


@pytest.mark.long
def test_a_restored_run_writes_what_came_after_its_checkpoint_again_and_once(
    shop: BrokerShop,
) -> None:
    shop.start("--checkpoint-every", "0s", "--retain", "50")
    shop.drain()
    first = shop.headgate("show", JOB)
    checkpoint = first["checkpoint"]
    before = {name: shop.output(name) for name in OUTPUTS}
    shop.start()
    shop.produce(1, 3_000)
    shop.drain()
    shop.assert_exactly_once()
    after = {name: shop.output(name) for name in OUTPUTS}
    shop.start("--from", checkpoint)
    shop.drain()
    lineage = shop.status()["lineage"]
    assert lineage != first["lineage"]
    for name in OUTPUTS:
        again = after[name] - before[name]
        # The first run's rows are there as they were; those behind the checkpoint once more.
        assert shop.output(name) == after[name] + again, name
        assert shop.lineages(name)[lineage] == again.total()
