"""PostgreSQL under fire: what a reader finds in its tables, whatever was killed when."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from postgres_shop import PostgresShop
from shop import JOB, freeze, kill

# Before and after the database commits; `make test-all` has those within the transaction, and
# before Spark commits, too.
CRASHES = ("state-committed", "task-committed")
ALL_CRASHES = ("in-transaction", *CRASHES, "epoch-committed")
ROWS = 3_000


@pytest.fixture
def shop(tmp_path: Path, own_postgres: PostgresServer) -> Iterator[PostgresShop]:
    shop = PostgresShop(tmp_path, own_postgres.make_database())
    try:
        yield shop
    finally:
        if shop.supervisor is not None and shop.supervisor.poll() is None:
            shop.kill_supervisor()


def test_a_driver_that_dies_around_commits_and_a_killed_server_lose_and_double_nothing(
    shop: PostgresShop, own_postgres: PostgresServer, broker_kills: int, seed: int
) -> None:
    moments = random.Random(seed)
    crashes = CRASHES if broker_kills == 1 else ALL_CRASHES
    shop.send(ROWS)
    shop.start()
    shop.wait_until(shop.is_running)
    for point in crashes:
        before = shop.status()["attempt"]
        shop.reach_by_sending(point, ROWS)
        shop.wait_for_attempt_after(before)
        shop.wait_until(shop.is_running)
    assert len(shop.events("FAILURE")) == len(crashes)
    # The server dies with a transaction that has sent rows, and is away for a while.
    with shop.holding("state-committed") as held:
        shop.send(ROWS)
        shop.wait_until(held.exists)
        own_postgres.kill()
    time.sleep(moments.uniform(0.0, 3.0))
    own_postgres.start()
    shop.send(ROWS)
    shop.wait_until(lambda: shop.count() == len(shop.sent))
    shop.drain()
    shop.assert_written_once()


@pytest.mark.long
def test_a_driver_that_was_frozen_in_a_transaction_writes_nothing_when_it_wakes(
    shop: PostgresShop,
) -> None:
    shop.send(ROWS)
    shop.start()
    shop.wait_until(shop.is_running)
    shop.wait_until(lambda: shop.count() == ROWS)
    with shop.holding("state-committed") as held:
        shop.send(ROWS)
        shop.wait_until(held.exists)
        child, driver = int(shop.status()["child"]), shop.jvm()
        freeze(shop, driver)
        freeze(shop, child)
    try:
        shop.kill_supervisor()
        # The frozen driver holds the lock; on another machine its successor would not see it.
        (shop.home / "jobs" / JOB / "driver.lock").unlink()
        shop.start()
        shop.wait_until(lambda: shop.count() == 2 * ROWS)
        os.kill(driver, signal.SIGCONT)
        shop.send(ROWS)
        shop.wait_until(lambda: not _lives(driver) or "BROKER_UNREACHABLE" in shop.spark_log())
        shop.wait_until(lambda: shop.count() == 3 * ROWS)
    finally:
        kill(child)
        kill(driver)
    shop.drain()
    shop.assert_written_once()


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/cmdline").exists()
