"""What an empty home goes on from: the record of a job on a store, and who owns it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_notes import FakeStore

from headgate import Flow
from headgate._locations import parse_location
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder, write_json
from headgate.jobs.runs.lineage import Run, find_run, new_run, write_run
from headgate.jobs.runs.store_record import StoreRecord, forget_stores, list_stores

STORE = "s3a://shop/checkpoints"
RECORD = "jobs/orders.json"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def make_home(root: Path, name: str) -> JobFolder:
    home = JobFolder(root / name, "orders")
    home.path.mkdir(parents=True)
    return home


def record_of(home: JobFolder, store: FakeStore, place: str = STORE) -> StoreRecord:
    folder = place.removeprefix(STORE)
    return StoreRecord(home, parse_location(place), store.notes(folder))


def start(home: JobFolder, place: str | None = STORE, *, hour: int = 12) -> Run:
    """Give the home a run as a start does that has reached its first batch."""
    flow = Flow("orders")
    flow.stream("orders", "id BIGINT").to("out")
    run = new_run(
        home,
        flow.graph(),
        parallelism=2,
        checkpoints=None if place is None else parse_location(place),
        now=NOON.replace(hour=hour),
    )
    write_run(home, run)
    home.write_job(run.lineage, flow="flow.py", options={})
    return run


def take_over(record: StoreRecord, *, ignore_corrupted: bool = False) -> str | None:
    return record.take_over(ignore_corrupted=ignore_corrupted, flow="other.py", options={})


def refused(record: StoreRecord) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        take_over(record)
    return caught.value


def change(store: FakeStore, changes: Mapping[str, Any]) -> None:
    content = json.loads(store.files[RECORD][0])
    store.write(RECORD, json.dumps({**content, **changes}).encode())


def test_an_empty_home_gets_the_run_as_it_was(tmp_path: Path) -> None:
    store, home, empty = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    run = start(home)
    (home.run_folder(run.lineage) / "at-least-once").touch()
    reached = {"format": 1, "query": "q", "batch": 7}
    store.notes().write(f"{run.lineage}/reached.json", json.dumps(reached).encode())
    record_of(home, store).replace(run.lineage)
    assert take_over(record_of(empty, store)) == run.lineage
    assert find_run(empty, run.lineage) == run
    assert (empty.run_folder(run.lineage) / "at-least-once").exists()
    assert json.loads((empty.run_folder(run.lineage) / "reached.json").read_text()) == reached
    assert empty.find_present_run() == run.lineage
    # A start that is killed here takes nothing over again.
    assert take_over(record_of(empty, store)) is None


def test_the_home_that_owns_the_job_reads_nothing_back(tmp_path: Path) -> None:
    store, home = FakeStore(), make_home(tmp_path, "a")
    run = start(home)
    record_of(home, store).replace(run.lineage)
    later = start(home, hour=13)
    # It was killed before it wrote the record again: its own files count.
    assert take_over(record_of(home, store)) is None
    assert home.find_present_run() == later.lineage


def test_a_home_that_was_killed_between_its_file_and_the_record_owns_the_job(
    tmp_path: Path,
) -> None:
    store, home = FakeStore(), make_home(tmp_path, "a")
    run = start(home)
    record_of(home, store).replace(run.lineage)

    def kill(path: str) -> None:
        raise KeyboardInterrupt

    store.before_put = kill
    with pytest.raises(KeyboardInterrupt):
        record_of(home, store).replace(run.lineage)
    store.before_put = lambda _: None
    assert take_over(record_of(home, store)) is None
    record_of(home, store).replace(run.lineage)


def test_a_home_whose_job_ran_elsewhere_meanwhile_is_brought_up_to_date(tmp_path: Path) -> None:
    store, home, other = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    first = start(home)
    record_of(home, store).replace(first.lineage)
    take_over(record_of(other, store))
    second = start(other, hour=13)
    record_of(other, store).replace(second.lineage)
    assert not record_of(home, store).is_ours()
    with pytest.raises(HeadgateError, match="LEASE_LOST"):
        record_of(home, store).replace(first.lineage)
    assert take_over(record_of(home, store)) == second.lineage
    # The run before is known, too: its tasks are shut out.
    assert {path.name for path in (home.path / "runs").iterdir()} == {first.lineage, second.lineage}
    record_of(home, store).replace(second.lineage)
    assert not record_of(other, store).is_ours()


def test_a_third_home_knows_the_runs_that_were_left(tmp_path: Path) -> None:
    store, home, empty = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    first = start(home)
    record_of(home, store).replace(first.lineage)
    second = start(home, hour=13)
    record_of(home, store).replace(second.lineage)
    assert take_over(record_of(empty, store)) == second.lineage
    assert find_run(empty, first.lineage) == first


def test_of_two_homes_that_write_at_once_one_learns_that_it_lost(tmp_path: Path) -> None:
    store, home, other = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    ours, theirs = start(home), start(other, hour=13)

    def overtake(_: str) -> None:
        store.before_put = lambda _: None
        record_of(other, store).replace(theirs.lineage)

    store.before_put = overtake
    with pytest.raises(HeadgateError, match="LEASE_LOST"):
        record_of(home, store).replace(ours.lineage)
    assert json.loads(store.files[RECORD][0])["lineage"] == theirs.lineage


def test_a_canceled_job_begins_anew_in_an_empty_home(tmp_path: Path) -> None:
    store, home, empty = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    run = start(home)
    record_of(home, store).replace(run.lineage)
    record_of(home, store).replace(None)
    assert take_over(record_of(empty, store)) is None
    assert empty.find_present_run() is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"format": 1}', b"\xff"])
def test_a_corrupted_record_is_refused_unless_the_start_needs_none(
    tmp_path: Path, content: bytes
) -> None:
    store, empty = FakeStore(), make_home(tmp_path, "b")
    store.write(RECORD, content)
    error = refused(record_of(empty, store))
    assert error.code == "JOB_FILE_BROKEN"
    assert error.message.startswith(f"cannot read {STORE}/{RECORD}: it is corrupted")
    assert error.hint.startswith(f"start from a checkpoint: --from {STORE}/LINEAGE/checkpoints/")
    assert take_over(record_of(empty, store), ignore_corrupted=True) is None
    run = start(empty)
    record_of(empty, store).replace(run.lineage)
    assert record_of(empty, store).is_ours()


@pytest.mark.parametrize("changes", [{"format": 2}, {"kept": {"run": {"format": 9}}}])
def test_a_record_of_a_newer_release_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    store, home, empty = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    record_of(home, store).replace(start(home).lineage)
    change(store, changes)
    error = refused(record_of(empty, store))
    assert error.code == "JOB_FORMAT_UNSUPPORTED"
    assert error.hint == "use the release of headgate that wrote it, or a newer one"


def test_a_job_that_has_moved_to_another_store_is_refused(tmp_path: Path) -> None:
    store, home, empty = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    record_of(home, store).replace(start(home).lineage)
    moved = start(home, f"{STORE}/new", hour=13)
    for place in (STORE, f"{STORE}/new"):
        record_of(home, store, place).replace(moved.lineage)
    forget_stores(home, but=parse_location(f"{STORE}/new"))
    assert [str(place) for place in list_stores(home)] == [f"{STORE}/new"]
    error = refused(record_of(empty, store))
    assert error.code == "JOB_ELSEWHERE"
    assert f"has its checkpoints elsewhere, in {STORE}/new/" in error.message
    assert take_over(record_of(empty, store, f"{STORE}/new")) == moved.lineage


def test_a_job_of_the_same_name_on_a_disk_is_not_mixed_up(tmp_path: Path) -> None:
    store, home, other = FakeStore(), make_home(tmp_path, "a"), make_home(tmp_path, "b")
    record_of(home, store).replace(start(home).lineage)
    present = start(other, None)
    error = refused(record_of(other, store))
    assert error.code == "JOB_ELSEWHERE"
    assert other.find_present_run() == present.lineage


def test_a_home_that_does_not_know_itself_takes_the_record(tmp_path: Path) -> None:
    store, home = FakeStore(), make_home(tmp_path, "a")
    run = start(home)
    record_of(home, store).replace(run.lineage)
    write_json(home.path / "store.json", {"written": 5})
    assert take_over(record_of(home, store)) == run.lineage


def test_the_record_goes_with_the_job(tmp_path: Path) -> None:
    store, home = FakeStore(), make_home(tmp_path, "a")
    record_of(home, store).replace(start(home).lineage)
    store.notes().write("jobs/orders.lock/3", b"{}")
    store.notes().write("jobs/orders-2.json", b"{}")
    record_of(home, store).remove()
    assert list(store.files) == ["jobs/orders-2.json"]
