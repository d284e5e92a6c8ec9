"""Jobs with their checkpoints on S3: savepoints, drivers beside each other, a store that hangs."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_shop import served
from kafka_broker import KafkaBroker
from s3_server import S3Server
from s3_shop import S3Shop
from shared_shop import SharedShop
from shop import JOB, OUTPUTS, family, freeze, kill


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path, s3: S3Server) -> Iterator[S3Shop]:
    place, broker = getattr(request, "param", "s3 own_kafka").split()
    kind = SharedShop if place == "shared" else S3Shop
    yield from served(kind(tmp_path, request.getfixturevalue(broker), s3))


@pytest.mark.long
def test_a_savepoint_on_a_store_is_verified_restored_and_its_state_read(shop: S3Shop) -> None:
    shop.start("--until-caught-up")
    assert shop.supervisor is not None
    assert shop.supervisor.wait(timeout=240) == 0
    lineage = shop.lineage()
    place = f"{shop.store}/savepoints/before"
    taken = shop.headgate("savepoint", JOB, "--to", place)
    assert taken["folder"] == place
    (checked,) = shop.ask("verify", place, "--files-only")
    assert (checked["status"], checked["problems"]) == ("COMPLETED", [])
    shop.produce(1, 300)
    # In the foreground: nothing is left if the test fails.
    shop.headgate("restore", JOB, "--from", place, "--until-caught-up")
    assert shop.lineage() != lineage
    shop.assert_exactly_once()
    user = json.loads(shop.values("users")[0])
    asked = ("state", JOB, "with-user", "--key", str(user["id"]))
    assert shop.headgate(*asked)["found"]
    entries = shop.headgate(*asked, "--history")["entries"]
    assert len(entries) > 1
    assert not any(entry["problem"] for entry in entries)
    [[users]] = shop.headgate("state", JOB, "--sql", "select count(*) from with_user")["rows"]
    assert users == 2_000


@pytest.mark.long
@pytest.mark.parametrize(
    ("shop", "point"),
    [
        ("s3 own_kafka", "state-committed"),
        ("s3 own_pulsar", "in-transaction"),
        ("shared own_kafka", "state-committed"),
    ],
    indirect=["shop"],
)
def test_a_zombie_of_another_home_ends_before_its_next_commit(shop: S3Shop, point: str) -> None:
    shop.start()
    shop.wait_until(shop.is_running)
    shop.wait_until(shop.kept)
    other = shop.in_another_home("other")
    refused = other.run_to_end()
    assert refused.returncode == 3
    assert "LEASE_HELD" in refused.stderr
    assert "has just renewed it" in refused.stderr
    assert not (other.home / "jobs" / JOB / "job.json").exists()

    # In the middle of a batch, on a host that seems to be gone.
    with shop.holding(point) as held:
        shop.produce(1, 1_000)
        shop.wait_until(held.exists)
        assert shop.supervisor is not None
        zombies = family(shop.supervisor.pid)
        for pid in zombies:
            freeze(shop, pid)
    try:
        other.start()
        other.wait_until(other.is_running)
        assert other.lineage() == shop.lineage()
        shop.produce(2, 1_000)
        other.wait_until(lambda: sum(other.output(name).total() for name in OUTPUTS) > 4_500)
        before = shop.keys("jobs")
        for pid in reversed(zombies):
            os.kill(pid, signal.SIGCONT)
        assert shop.supervisor.wait(timeout=240) == 3
        assert shop.status()["state"] == "FAILED"
        assert "LEASE_LOST" in shop.tail()
        assert [key for key in before if key.endswith(".json")] == [f"{JOB}.json"]
        shop.produce(3, 500)
        other.drain()
        other.assert_exactly_once()
    finally:
        for pid in zombies:
            kill(pid)
        if other.supervisor is not None and other.supervisor.poll() is None:
            other.kill_supervisor()

    # Its files say less than the store does: it is brought up to date.
    shop.start("--until-caught-up")
    assert shop.supervisor.wait(timeout=240) == 0
    assert len(shop.events("TAKEN_OVER")) == 1
    shop.assert_exactly_once()


@pytest.mark.long
def test_a_store_that_does_not_answer_for_a_while_costs_no_row(
    tmp_path: Path, own_kafka: KafkaBroker, own_s3: S3Server
) -> None:
    shop = S3Shop(tmp_path, own_kafka, own_s3)
    for _ in served(shop):
        shop.start()
        shop.wait_until(shop.is_running)
        shop.wait_until(shop.kept)
        own_s3.pause()
        shop.produce(1, 1_000)
        try:
            # Longer than its claims are valid: nobody can have taken them.
            time.sleep(20)
        finally:
            own_s3.resume()
        shop.produce(2, 500)
        shop.wait_until(lambda: sum(shop.output(name).total() for name in OUTPUTS) > 4_000)
        shop.drain()
        shop.assert_exactly_once()
        shop.headgate("delete", JOB, "--yes")
        assert shop.keys() == []
