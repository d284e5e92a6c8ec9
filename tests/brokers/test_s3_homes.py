"""A job whose run is on a store: kept, saved, pruned and deleted there, without Spark."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock
from s3fs import S3FileSystem
from stored_run import LAST, unpack
from upath import UPath

from headgate import Flow, _s3
from headgate._codec import encode
from headgate.checkpoints.sparklog import files_of
from headgate.checkpoints.stores import files_at, place_at
from headgate.checkpoints.stores.objects import ObjectPlace, list_objects
from headgate.errors import HeadgateError, StoreError
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.checkpoints.listing import list_checkpoints, pin_checkpoint, verify_anything
from headgate.jobs.checkpoints.portable import copy_states, is_portable, read_any
from headgate.jobs.checkpoints.restore_plan import find_target
from headgate.jobs.control.verbs import take_savepoint
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.removal.deletion import delete_job, preview_delete
from headgate.jobs.removal.pruning import prune_job
from headgate.jobs.runs.deletions import finish_deletions, set_aside
from headgate.jobs.runs.job_stores import held_stores
from headgate.jobs.runs.lineage import Run, find_run, find_store, new_run, write_run
from headgate.jobs.runs.store_record import StoreRecord
from headgate.jobs.startup.resuming import find_damage
from headgate.jobs.values import RunOptions
from headgate.jobs.views.job import list_jobs, newest_checkpoint, show_job

JOB, RUN = "shop", "20261115T152501-31b689"
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, store_place: UPath) -> JobFolder:
    """Give a job whose stored run has its checkpoint on S3, and which owns the record there."""
    home = JobFolder(tmp_path / "home", JOB)
    home.run_folder(RUN).mkdir(parents=True)
    folder = unpack(home.run_folder(RUN))
    stored = find_run(home, RUN)
    assert stored is not None
    run = replace(stored, checkpoint=store_place / RUN / "checkpoint")
    with place_at(run.checkpoint).publishing(linked=False) as draft:
        draft.bring(files_at(folder), files_of(folder, LAST))
    place_at(folder).remove_tree()
    begin(home, run)
    return home


def begin(home: JobFolder, run: Run) -> None:
    """Make a run the job's present one, as a start does."""
    write_run(home, run)
    with held_stores(home, verb="start", chosen=find_store(run)) as stores:
        home.write_job(run.lineage, flow="flow.py", options={})
        stores.note_present(run.lineage)


def run_of(home: JobFolder, lineage: str = RUN) -> Run:
    run = find_run(home, lineage)
    assert run is not None
    return run


def keep(home: JobFolder, **options: object) -> CheckpointKeeper:
    chosen = replace(RunOptions(checkpoint_every=timedelta(0)), **options)  # type: ignore[arg-type]
    keeper = CheckpointKeeper(home, run_of(home), chosen, FakeClock())
    keeper.keep_last()
    return keeper


def next_run(home: JobFolder, store_place: UPath) -> Run:
    """Begin a run that has nothing to do with the one before."""
    flow = Flow(JOB)
    flow.stream("orders", "id BIGINT").to("out")
    run = new_run(home, flow.graph(), parallelism=1, checkpoints=store_place, now=NOON)
    (run.checkpoint / "metadata").write_text('{"id":"a"}')
    begin(home, run)
    return run


def names(place: UPath) -> set[str]:
    return set(list_objects(place))


def test_a_run_on_s3_is_whole_and_its_checkpoints_are_listed(
    home: JobFolder, store_place: UPath
) -> None:
    assert find_damage(home, run_of(home), quick=True) == []
    keep(home)
    (kept,) = list_checkpoints(home)
    assert (kept.id, kept.problems) == (f"chk-{LAST}", ())
    assert str(kept.folder) == f"{store_place}/{RUN}/checkpoints/chk-{LAST}"
    assert pin_checkpoint(home, kept.id, pinned=True).pinned
    (store_place / RUN / "checkpoint" / "metadata").unlink()
    assert find_damage(home, run_of(home), quick=True)


def test_a_savepoint_is_taken_on_s3_verified_and_found_by_its_address(
    home: JobFolder, store_place: UPath
) -> None:
    place = f"{store_place}/savepoints/before"
    taken = take_savepoint(home, to=place)
    assert (str(taken.folder), taken.batch) == (place, LAST)
    (verified,) = verify_anything(home.root, place, open_newest=False)
    assert verified.problems == ()
    found = find_target(home, source=place, at=None, now=NOON)
    assert (found.kind, found.run, found.batch) == ("savepoint", RUN, LAST)
    with pytest.raises(HeadgateError) as caught:
        take_savepoint(home, to=place)
    assert caught.value.code == "CHECKPOINT_EXISTS"


def test_a_savepoint_on_s3_has_no_name_of_a_kept_checkpoint(
    home: JobFolder, store_place: UPath
) -> None:
    before = names(store_place)
    with pytest.raises(HeadgateError) as caught:
        take_savepoint(home, to=f"{store_place}/any/checkpoints/chk-3")
    assert caught.value.code == "BAD_STORE"
    assert "is the name of a kept checkpoint" in caught.value.message
    assert names(store_place) == before


def test_an_address_without_a_checkpoint_is_not_found(home: JobFolder, store_place: UPath) -> None:
    with pytest.raises(HeadgateError) as caught:
        find_target(home, source=f"{store_place}/nothing", at=None, now=NOON)
    assert caught.value.code == "CHECKPOINT_NOT_FOUND"


def test_portable_state_is_read_on_s3_and_copied_to_a_run_there(
    home: JobFolder, tmp_path: Path, store_place: UPath
) -> None:
    del home
    place = store_place / "portable"
    (place / "state" / "with-user" / "000.parquet").write_bytes(b"rows")
    (place / "portable.json").write_text(json.dumps({"format": 1}))
    assert is_portable(place)
    with pytest.raises(HeadgateError) as caught:
        read_any(place)
    assert caught.value.code == "PORTABLE_UNREADABLE"
    for into in (store_place / "run" / "taken", tmp_path / "taken"):
        copy_states(place, ["with-user"], into)
        assert (into / "state" / "with-user" / "000.parquet").read_bytes() == b"rows"
    with pytest.raises(HeadgateError, match="there is no folder state/other"):
        copy_states(place, ["other"], store_place / "run" / "more")


def test_a_cancel_that_deletes_leaves_nothing_to_go_on_with(
    home: JobFolder, tmp_path: Path, store_place: UPath
) -> None:
    keeper = keep(home, delete_on_cancel=True)
    keeper.job_ended(canceled=True)
    with held_stores(home, verb="cancel") as stores:
        stores.note_present(None)
    assert not any(name.startswith(f"{RUN}/checkpoint") for name in names(store_place))
    empty = JobFolder(tmp_path / "empty", JOB)
    with empty.locked(), held_stores(empty, verb="start", chosen=store_place) as stores:
        assert stores.take_over(ignore_corrupted=False, flow="flow.py", options={}) is None
    assert empty.find_present_run() is None


def test_the_files_of_an_old_run_are_pruned_on_s3(home: JobFolder, store_place: UPath) -> None:
    keep(home)
    present = next_run(home, store_place)
    planned = prune_job(home, drop_checkpoints=True, dry_run=True)
    assert planned.bytes > 0
    assert {f"{RUN}/checkpoint/metadata", f"{RUN}/checkpoints/chk-{LAST}/checkpoint.json"} <= names(
        store_place
    )
    prune_job(home, drop_checkpoints=True)
    left = names(store_place)
    assert not any(name.startswith(f"{RUN}/") for name in left)
    assert f"{present.lineage}/checkpoint/metadata" in left


def test_a_deleted_job_leaves_nothing_on_s3(home: JobFolder, store_place: UPath) -> None:
    keep(home)
    next_run(home, store_place)
    (store_place / "jobs" / "shop-2.json").write_text("{}")
    assert preview_delete(home).bytes > 0
    delete_job(home)
    assert names(store_place) == {"jobs/shop-2.json"}
    assert not home.path.exists()


def test_a_job_that_another_home_has_taken_over_is_not_deleted_on_s3(
    home: JobFolder, tmp_path: Path, store_place: UPath
) -> None:
    keep(home)
    other = JobFolder(tmp_path / "other", JOB)
    with other.locked(), held_stores(other, verb="start", chosen=store_place) as stores:
        taken = stores.take_over(ignore_corrupted=False, flow="flow.py", options={})
        assert taken == (store_place, RUN)
        with pytest.raises(HeadgateError, match="LEASE_HELD"):
            delete_job(home)
        stores.note_present(RUN)
    before = names(store_place)
    deleted = delete_job(home)
    assert f"runs on {store_place}, which another home has taken over" in deleted.stays
    assert {name for name in before if "/" in name and not name.startswith("jobs/")} <= names(
        store_place
    )
    assert find_damage(other, run_of(other), quick=True) == []


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_job_that_another_home_begins_during_a_deletion_stays(
    home: JobFolder,
    tmp_path: Path,
    store_place: UPath,
    monkeypatch: pytest.MonkeyPatch,
    is_finished: bool,
) -> None:
    other = JobFolder(tmp_path / "other", JOB)

    def begin_another(place: ObjectPlace) -> None:
        monkeypatch.undo()
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        place.remove_tree()
        with held_stores(other, verb="start", chosen=store_place) as stores:
            stores.take_over(ignore_corrupted=False, flow="flow.py", options={})
        next_run(other, store_place)

    environment = {name: os.environ[name] for name in os.environ if name.startswith("AWS_")}
    monkeypatch.setattr(ObjectPlace, "remove_tree", begin_another)
    if is_finished:
        # The process that deleted the job was killed long ago.
        with home.locked(verb="delete"), held_stores(home, verb="delete") as stores:
            stores.empty_records()
            set_aside(home, keep_savepoints=False)
        finish_deletions(home.root)
        assert StoreRecord(other, store_place).is_ours()
        assert {f"jobs/{JOB}.json", f"jobs/{JOB}.lock/8"} <= names(store_place)
        assert not home.path.exists()
    else:
        with pytest.raises(HeadgateError, match="LEASE_HELD"):
            delete_job(home)


@pytest.mark.parametrize("store_place", ["s3_place"], indirect=True)
def test_a_job_is_shown_while_its_store_does_not_answer(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(home).kept
    assert kept is not None
    newest = encode(replace(kept, sources={}, state={}))
    home.write_status({"state": "STOPPED", "lineage": RUN, "checkpoint": kept.id, "newest": newest})

    async def hang(*_args: object, **_named: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(S3FileSystem, "_call_s3", hang)
    monkeypatch.setattr(_s3, "ANSWERED_WITHIN_S", 0.01)

    (view,) = list_jobs(home.root)
    assert view.checkpoint_at == kept.completed_at
    found = newest_checkpoint(home, view)
    assert found is not None
    assert (found.id, found.full_bytes) == (kept.id, kept.full_bytes)
    details = show_job(home)
    assert (details.view, details.checkpoints) == (view, ())
    assert details.unlisted == "cannot use S3: no answer within 0.01 s"
    assert "newest" not in encode(details)
    assert show_job(home, listed=False).unlisted == ""
    with pytest.raises(StoreError, match="no answer within"):
        list_checkpoints(home)
