"""Checkpoints in a folder that hosts share: drivers are lost with their homes, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_shop import served
from kafka_broker import KafkaBroker
from s3_server import S3Server
from s3_shop import S3Shop
from shared_shop import SharedShop

POINTS = ("state-committed", "checksum-written", "in-transaction", "epoch-committed")


@pytest.fixture
def shop(tmp_path: Path, own_kafka: KafkaBroker, s3: S3Server) -> Iterator[SharedShop]:
    yield from served(SharedShop(tmp_path, own_kafka, s3))


@pytest.mark.long
def test_drivers_that_are_lost_with_their_homes_cost_no_row(shop: SharedShop) -> None:
    lineage: str | None = None
    place: S3Shop = shop
    for number, point in enumerate(POINTS):
        place = place.in_another_home(f"host-{number}")
        place.start()
        place.wait_until(place.is_running)
        assert lineage in (None, place.lineage())
        lineage = place.lineage()
        place.wait_until(place.kept)
        shop.produce(number + 1, 300)
        place.lose_driver_at(point)
    last = place.in_another_home("last")
    last.start()
    last.wait_until(last.is_running)
    assert last.lineage() == lineage
    last.drain()
    last.assert_exactly_once()
    assert shop.kept() == [lineage]
