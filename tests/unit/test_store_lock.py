"""One supervisor at a time has a job on an object store; who comes too late learns it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from fake_clock import FakeClock
from fake_notes import FakeStore

from headgate.errors import HeadgateError
from headgate.jobs.runs.store_lock import StoreLock

PERIOD = timedelta(seconds=30)


def lock_of(store: FakeStore, home: str, *, period: timedelta = PERIOD) -> StoreLock:
    return StoreLock(
        store.notes("jobs"),
        "orders",
        holders=(f"{home}/lock", f"{home}/driver.lock"),
        period=period,
        clock=store.clock,
    )


def numbers(store: FakeStore, folder: str = "lock") -> list[int]:
    return sorted(int(name) for name in store.notes("jobs").list_times(f"orders.{folder}"))


def claim(holder: str, *, released: bool = False, period: int = 30) -> bytes:
    return json.dumps(
        {
            "format": 1,
            "holder": holder,
            "driver": "1",
            "host": "a",
            "process": 7,
            "released": released,
            "period_ms": period * 1000,
        }
    ).encode()


def refusal(lock: StoreLock, tell: list[str] | None = None) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        lock.take(verb="start", tell=None if tell is None else tell.append)
    assert caught.value.code == "LEASE_HELD"
    return caught.value


def test_a_second_home_is_refused_while_the_first_lives() -> None:
    store = FakeStore()
    lock_of(store, "a").take(verb="start")
    store.clock.advance(seconds=10)
    error = refusal(lock_of(store, "b"))
    assert error.message.startswith(
        "cannot start job 'orders': its checkpoints are in use: process"
    )
    assert "it expires in 22 s unless it is renewed" in error.message
    assert error.retryable


def test_a_home_that_is_killed_is_waited_for_and_then_replaced() -> None:
    store = FakeStore()
    told: list[str] = []
    first = lock_of(store, "a")
    first.take(verb="start")
    store.clock.advance(seconds=10)
    second = lock_of(store, "b")
    second.take(verb="start", tell=told.append)
    assert [line.split(":")[0] for line in told] == ["waiting for up to 22 s"]
    assert store.clock.seconds == pytest.approx(32, abs=1)
    first.renew()
    assert first.lost is not None
    assert first.lost.code == "LEASE_LOST"
    with pytest.raises(HeadgateError, match="LEASE_LOST"):
        first.check()
    second.check()


def test_a_home_that_renews_while_another_waits_keeps_the_job() -> None:
    first: StoreLock

    def renew() -> None:
        first.renew()

    clock = FakeClock(steps=[lambda: None, renew])
    store = FakeStore(clock)
    told: list[str] = []
    first = lock_of(store, "a")
    first.take(verb="start")
    assert "has just renewed it" in refusal(lock_of(store, "b"), told).message
    assert len(told) == 1


def test_the_same_home_does_not_wait_for_its_killed_process() -> None:
    store = FakeStore()
    lock_of(store, "a").take(verb="start")
    lock_of(store, "a").take(verb="start")
    assert store.clock.seconds == 0


def test_a_lock_that_was_released_is_free() -> None:
    store = FakeStore()
    first = lock_of(store, "a")
    first.take(verb="start")
    first.release()
    lock_of(store, "b").take(verb="start")
    assert store.clock.seconds == 0
    first.release()
    assert refusal(lock_of(store, "c"))


def test_a_claim_is_valid_as_long_as_it_says_itself() -> None:
    store = FakeStore()
    lock_of(store, "a", period=timedelta(minutes=5)).take(verb="start")
    store.clock.advance(seconds=60)
    assert "expires in 242 s" in refusal(lock_of(store, "b")).message


def test_of_two_homes_at_the_same_instant_one_gets_the_job() -> None:
    store = FakeStore()
    other = lock_of(store, "b")

    def overtake(path: str) -> None:
        if path == "jobs/orders.lock/1":
            store.before_put = lambda _: None
            other.take(verb="start")

    store.before_put = overtake
    assert "another process has just taken it" in refusal(lock_of(store, "a")).message
    other.check()


def test_a_takeover_shuts_out_the_driver_of_the_home_before() -> None:
    store = FakeStore()
    driver = store.notes("jobs")
    driver.write("orders.lease/7", claim("a/driver.lock"))
    store.clock.advance(seconds=40)
    lock_of(store, "b").take(verb="start")
    assert numbers(store, "lease") == [7, 8]
    newest = driver.find("orders.lease/8")
    assert newest is not None
    # Its own driver need not wait for it.
    assert json.loads(newest.content)["released"]


def test_a_driver_that_lives_without_its_supervisor_keeps_the_job() -> None:
    store = FakeStore()
    store.notes("jobs").write("orders.lease/7", claim("a/driver.lock"))
    assert "process 7 on a has it" in refusal(lock_of(store, "b")).message
    assert numbers(store) == []


def test_a_driver_that_renews_during_the_takeover_keeps_the_job() -> None:
    store = FakeStore()
    driver = store.notes("jobs")
    driver.write("orders.lease/7", claim("a/driver.lock"))
    store.clock.advance(seconds=40)

    def renew(path: str) -> None:
        if path == "jobs/orders.lease/8":
            store.before_put = lambda _: None
            driver.put("orders.lease/8", claim("a/driver.lock"), mark=None)

    store.before_put = renew
    assert "its driver has just renewed its lease" in refusal(lock_of(store, "b")).message
    # No other start waits for the one that was refused.
    newest = store.notes("jobs").find(f"orders.lock/{max(numbers(store))}")
    assert newest is not None
    assert json.loads(newest.content)["released"]


def test_only_two_claims_stay() -> None:
    store = FakeStore()
    lock = lock_of(store, "a")
    lock.take(verb="start")
    for _ in range(5):
        store.clock.advance(seconds=10)
        lock.renew()
    assert numbers(store) == [5, 6]


def test_a_store_that_is_down_takes_no_lock_away() -> None:
    store = FakeStore()
    lock = lock_of(store, "a")
    lock.take(verb="start")
    store.clock.advance(seconds=40)
    store.is_down = True
    with pytest.raises(HeadgateError, match="STORE_UNAVAILABLE"):
        lock.check()
    assert lock.lost is None
    store.is_down = False
    lock.check()


def test_a_store_that_ignores_conditions_is_refused() -> None:
    store = FakeStore()
    store.is_careless = True
    with pytest.raises(HeadgateError, match="ignores If-None-Match") as caught:
        lock_of(store, "a").take(verb="start")
    assert (caught.value.code, caught.value.exit_code) == ("BAD_STORE", 3)
    assert store.files == {}


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": 2}', b"[]"])
def test_a_claim_that_cannot_be_read_is_refused(content: bytes) -> None:
    store = FakeStore()
    store.notes("jobs").write("orders.lock/3", content)
    with pytest.raises(HeadgateError) as caught:
        lock_of(store, "a").take(verb="start")
    assert caught.value.code == "LEASE_UNREADABLE"
    assert caught.value.message.startswith("cannot read claim 3 of job 'orders' in s3a://shop/jobs")


def test_a_lock_is_held_in_a_block_alone() -> None:
    store = FakeStore()
    with lock_of(store, "a").held(verb="start"):
        refusal(lock_of(store, "b"))
    with lock_of(store, "b").held(verb="start"):
        pass
