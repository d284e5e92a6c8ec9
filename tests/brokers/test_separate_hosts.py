"""Orders on hosts that share nothing but an S3 server and Kafka: a worker and a driver are lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts_shop import DRIVERS, WORKERS, HostsShop
from kafka_broker import KafkaBroker
from network_hosts import find_obstacle
from s3_server import S3Server
from shop import Production

OBSTACLE = find_obstacle()
# docs/guide/clusters.md promises it: the time until an executor counts as lost, and its share.
GIVEN_UP_WITHIN_S = 60.0


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker, s3: S3Server) -> Iterator[HostsShop]:
    made = HostsShop(tmp_path, own_kafka, s3)
    try:
        made.set_up()
        made.produce(0, 3_000)
        yield made
    finally:
        made.close()


@pytest.mark.long
@pytest.mark.skipif(OBSTACLE is not None, reason=OBSTACLE or "")
def test_hosts_that_share_a_store_alone_may_be_lost_and_cost_nothing(shop: HostsShop) -> None:
    shop.start_on(DRIVERS[0])
    with Production(shop, orders=100):
        shop.wait_until(shop.is_running)
        shop.wait_for_rows()
        shop.lose_worker(WORKERS[1])
        shop.wait_until(lambda: shop.events("EXECUTOR_LOST"))
        shop.wait_for_rows()
        shop.start_worker(WORKERS[1])
        shop.wait_until(lambda: shop.count_executors() >= 2)
        assert not shop.events("FAILURE")
        shop.wait_until(shop.kept)
        lineage = shop.status()["lineage"]
        shop.lose_driver()

        shop.start_on(DRIVERS[1])
        shop.wait_until(shop.is_running)
        assert shop.status()["lineage"] == lineage
        assert len(shop.events("TAKEN_OVER")) == 1
        shop.wait_for_rows()
    shop.drain()
    shop.assert_exactly_once()


@pytest.mark.long
@pytest.mark.skipif(OBSTACLE is not None, reason=OBSTACLE or "")
def test_a_host_that_vanishes_without_a_word_costs_a_minute(shop: HostsShop) -> None:
    """No connection ends: what runs there goes on, and writes until it is fenced."""
    shop.start_on(DRIVERS[0])
    with Production(shop, orders=100):
        shop.wait_until(shop.is_running)
        shop.wait_until(lambda: shop.count_executors() >= 2)
        shop.wait_for_rows()
        with shop.vanished(WORKERS[1]):
            cut_at = time.monotonic()
            shop.wait_until(lambda: shop.events("EXECUTOR_LOST"))
            lost_after = time.monotonic() - cut_at
            shop.wait_for_rows()
            print(f"lost after {lost_after:.0f} s, rows after {time.monotonic() - cut_at:.0f} s")
            assert lost_after < GIVEN_UP_WITHIN_S
            assert not shop.events("FAILURE")
        # Its executor learns that it was given up, and the worker starts another one.
        shop.wait_until(lambda: shop.count_executors() >= 2)
        shop.wait_for_rows()
    shop.drain()
    shop.assert_exactly_once()
