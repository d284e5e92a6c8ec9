"""Orders on a cluster with checkpoints on S3: what a reader of Kafka finds, whatever was killed."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_shop import ClusterShop
from kafka_broker import KafkaBroker
from s3_server import S3Server
from shop import JOB, Production, lose
from visits_job import VisitsJob
from visits_reference import (
    assert_counts_never_go_down,
    assert_lateness,
    count_by_cell,
    finals,
)

from headgate.jobs.sandbox.cluster import ClusterState, look_at_cluster
from headgate.jobs.views.processes import ExecutorView


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker, s3: S3Server) -> Iterator[ClusterShop]:
    made = ClusterShop(tmp_path, own_kafka, s3)
    try:
        made.set_up()
        made.produce(0, 3_000)
        yield made
    finally:
        made.close()


@pytest.mark.timeout(1200)
def test_a_cluster_and_a_store_are_all_that_orders_need(shop: ClusterShop) -> None:
    """A worker and the master are killed, and then the driver with all that its host has."""
    shop.start()
    with Production(shop, orders=100):
        shop.wait_until(shop.is_running)
        shop.wait_for_a_batch()
        # The attempt goes on: lost tasks run again, and a lost executor returns.
        shop.kill("worker-2")
        shop.wait_until(lambda: shop.events("EXECUTOR_LOST"))
        shop.wait_for_a_batch()
        _assert_processes_tell_of_a_loss(shop)
        shop.kill("master")
        shop.wait_for_a_batch()
        assert look_at_cluster(shop.cluster.folder).state is ClusterState.INCOMPLETE
        # The new master knows the driver, and gives it the executors that it lacks. That may be
        # none: while it recovers, it can give a worker two before it knows what the worker runs.
        shop.restore_cluster()
        shop.wait_until(lambda: shop.count_executors() >= 2)
        # In the middle of one more batch, of which readers have the rows.
        lineage = shop.lineage()
        shop.lose_driver_at("epoch-committed")
        assert not shop.events("FAILURE")
        assert shop.status()["attempt"] == 1
        assert shop.kept()
        shutil.rmtree(shop.home)
        shop.start()
        shop.wait_until(shop.is_running)
    assert shop.lineage() == lineage
    (taken,) = shop.events("TAKEN_OVER")
    assert (taken["store"], taken["lineage"]) == (shop.store, lineage)
    shop.drain()
    shop.assert_exactly_once()
    listed = shop.ask("checkpoints", JOB)
    assert listed
    assert all(one["folder"].startswith(f"{shop.store}/{lineage}/") for one in listed)


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
def test_visits_on_a_cluster_are_counted_once_with_nothing_but_a_store(
    shop: ClusterShop, tmp_path: Path, own_kafka: KafkaBroker
) -> None:
    folder = tmp_path / "visits"
    folder.mkdir()
    job = VisitsJob(folder, own_kafka)
    job.environment = shop.environment
    flags = (*shop.on_cluster(), "--checkpoints", shop.store, "--parallelism", "2")
    flags += ("--checkpoint-every", "1s", "--retain", "10")
    try:
        job.produce(0)
        job.start(*flags)
        old = job.events()
        job.wait_until(lambda: job.status().get("inputs") == {"visits": len(old)})
        shop.kill("worker-1")
        job.produce(1)
        events = len(job.events())
        job.wait_until(lambda: job.status()["inputs"] == {"visits": events})
        shop.restore_cluster()
        assert job.supervisor is not None
        lose(job.supervisor)
        shutil.rmtree(job.home)
        job.produce(2)
        job.start(*flags)
        assert job.end("stop", "--drain")["state"] == "STOPPED"
    finally:
        job.kill_supervisor()
    # A drain ends every window.
    late = job.late()
    assert_lateness(late, old, job.events())
    assert_counts_never_go_down(job.counts())
    assert finals(job.counts()) == count_by_cell(job.events(), late=late)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", ["disk", "store"])
def test_kills_of_executors_workers_masters_and_drivers_lose_and_double_nothing(
    shop: ClusterShop, place: str, kills: int, seed: int
) -> None:
    moments = random.Random(seed)
    blows = _BLOWS
    if place == "disk":
        shop.store = str(shop.folder / "checkpoints")
    else:
        blows += (_lose_host_of_driver,)
    shop.start()
    with Production(shop, orders=200):
        for number in range(max(20, kills)):
            shop.wait_until(shop.is_running)
            time.sleep(moments.uniform(0.2, 4.0))
            blow = moments.choice(blows)
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


def _lose_host_of_driver(shop: ClusterShop, _moments: random.Random) -> None:
    shop.lose_driver()
    shutil.rmtree(shop.home)
    shop.start()


_BLOWS: tuple[Callable[[ClusterShop, random.Random], None], ...] = (
    _kill_executor,
    _kill_executor,
    _kill_worker,
    _kill_master,
    _kill_driver,
)
