"""Small files on a real store are written under conditions, and the job's lock rests on that."""

from __future__ import annotations

from datetime import timedelta

import pytest
from upath import UPath

from headgate._locations import parse_location
from headgate.checkpoints.stores.notes import StoreNotes
from headgate.errors import HeadgateError, StoreError
from headgate.jobs.runs.store_lock import StoreLock


def test_a_file_is_created_once_and_replaced_by_those_who_know_it(store_place: UPath) -> None:
    notes = StoreNotes(store_place)
    assert notes.find("a.json") is None
    first = notes.put("a.json", b"1", mark=None)
    assert first is not None
    assert notes.put("a.json", b"2", mark=None) is None
    second = notes.put("a.json", b"2", mark=first)
    assert second is not None
    assert notes.put("a.json", b"3", mark=first) is None
    found = notes.find("a.json")
    assert found is not None
    assert (found.content, found.mark) == (b"2", second)
    notes.remove(["a.json", "never-there"])
    assert notes.put("a.json", b"4", mark=second) is None


def test_a_lost_answer_is_no_refusal(store_place: UPath) -> None:
    notes = StoreNotes(store_place)
    mark = notes.put("a.json", b"mine", mark=None)
    # As if the store had done it and its answer had been lost.
    assert notes.put("a.json", b"mine", mark=None) == mark


def test_a_bucket_that_does_not_exist_is_named(s3_place: UPath) -> None:
    notes = StoreNotes(parse_location(f"s3a://no-{s3_place.name}/a"))
    for ask in (
        lambda: notes.find("a"),
        lambda: notes.put("a", b"", mark=None),
        lambda: notes.list_times("a"),
    ):
        with pytest.raises(StoreError, match="there is no bucket"):
            ask()


def test_one_of_two_supervisors_has_a_job(store_place: UPath) -> None:
    first, second = (
        StoreLock(
            StoreNotes(store_place / "jobs"),
            "orders",
            holders=(f"{home}/lock", f"{home}/driver.lock"),
            period=timedelta(seconds=30),
        )
        for home in "ab"
    )
    with first.held(verb="start"):
        with pytest.raises(HeadgateError, match="LEASE_HELD"):
            second.take(verb="start")
        first.renew()
        first.check()
    with second.held(verb="start"):
        second.check()
    # Nothing is left but the claims.
    assert {
        name.isdigit() for name in StoreNotes(store_place / "jobs").list_times("orders.lock")
    } == {True}
