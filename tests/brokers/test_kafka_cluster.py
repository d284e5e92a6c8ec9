"""Orders on a cluster: what a reader of Kafka finds, whatever was killed of the cluster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_shop import ClusterShop
from kafka_broker import KafkaBroker
from shop import Production

from headgate.jobs.sandbox.cluster import ClusterState, look_at_cluster
from headgate.jobs.views.processes import ExecutorView


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker) -> Iterator[ClusterShop]:
    made = ClusterShop(tmp_path, own_kafka)
    try:
        made.set_up()
        made.produce(0, 3_000)
        yield made
    finally:
        made.close()


def test_a_master_and_a_worker_that_are_killed_cost_orders_nothing(shop: ClusterShop) -> None:
    """The job goes on in the same attempt: lost tasks run again, and lost executors return."""
    shop.start()
    with Production(shop, orders=100):
        shop.wait_until(shop.is_running)
        shop.wait_for_a_batch()
        shop.kill("master")
        shop.wait_for_a_batch()
        assert look_at_cluster(shop.cluster.folder).state is ClusterState.INCOMPLETE
        shop.restore_cluster()
        shop.kill("worker-2")
        shop.wait_until(lambda: shop.events("EXECUTOR_LOST"))
        shop.wait_for_a_batch()
        _assert_processes_tell_of_a_loss(shop)
        # The new master knows the driver, and gives it the executors that it lacks. That may be
        # none: while it recovers, it can give a worker two before it knows what the worker runs.
        shop.restore_cluster()
        shop.wait_until(lambda: shop.count_executors() >= 2)
        shop.wait_for_a_batch()
    shop.drain()
    shop.assert_exactly_once()
    assert not shop.events("FAILURE")
    assert shop.status()["attempt"] == 1


def _assert_processes_tell_of_a_loss(shop: ClusterShop) -> None:
    """An executor was lost, and one is there with its tasks, its memory and its log."""
    shop.wait_until(lambda: shop.processes().lost and _at_work(shop))
    lost = [view.executor for view in shop.processes().executors if not view.executor.is_alive][-1]
    assert lost.lost_reason
    assert lost.lost_at is not None
    assert lost.lost_at > lost.since
    assert lost.running == 0
    view = _at_work(shop)[0]
    vitals = view.executor.vitals
    assert vitals is not None
    assert view.executor.slots == 1
    assert view.executor.shuffle_written > 0
    assert {"heap", "direct", "mapped", "execution", "storage", "state"} <= set(vitals.pools)
    assert vitals.pools["heap"].limit == pytest.approx(512 * 1024**2, rel=0.2)
    assert vitals.resident > 100 * 1024**2
    assert view.has_log
    assert b"Spark Executor Command" in shop.executor_log(view.executor.id)


def _at_work(shop: ClusterShop) -> list[ExecutorView]:
    """Return the executors that have run tasks, and have Python workers for their functions."""
    return [
        view
        for view in shop.processes().executors
        if view.executor.is_alive
        and view.executor.completed
        and view.executor.vitals is not None
        and view.executor.vitals.workers
    ]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_kills_of_executors_workers_masters_and_drivers_lose_and_double_nothing(
    shop: ClusterShop, kills: int, seed: int
) -> None:
    moments = random.Random(seed)
    shop.start()
    with Production(shop, orders=200):
        for number in range(max(20, kills)):
            shop.wait_until(shop.is_running)
            time.sleep(moments.uniform(0.2, 4.0))
            blow = moments.choice(_BLOWS)
            print(f"kill {number}: {blow.__name__}")
            blow(shop, moments)
            shop.restore_cluster()
        shop.wait_until(shop.is_running)
        for point in ("in-transaction", "state-committed", "task-committed"):
            # The executor ends right there.
            shop.reach(point)
        shop.wait_for_a_batch()
        # Its tasks have run elsewhere when it goes on with them.
        shop.freeze_executor(0)
        shop.wait_for_a_batch()
    shop.drain()
    shop.assert_exactly_once()


def _kill_executor(shop: ClusterShop, moments: random.Random) -> None:
    shop.kill_executor(moments.randrange(2))


def _kill_worker(shop: ClusterShop, moments: random.Random) -> None:
    shop.kill(f"worker-{moments.randint(1, 2)}")
    time.sleep(moments.uniform(0.0, 3.0))


def _kill_master(shop: ClusterShop, moments: random.Random) -> None:
    shop.kill("master")
    time.sleep(moments.uniform(0.0, 3.0))


def _kill_driver(shop: ClusterShop, _moments: random.Random) -> None:
    shop.kill_child()


_BLOWS: tuple[Callable[[ClusterShop, random.Random], None], ...] = (
    _kill_executor,
    _kill_executor,
    _kill_worker,
    _kill_master,
    _kill_driver,
)
