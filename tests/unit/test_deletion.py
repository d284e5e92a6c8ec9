"""Deleting jobs: what goes, what stays, and what a kill in between leaves."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from past_jobs import NOON, keep, make_job
from stored_run import LAST, facts, unpack

from headgate import Flow, Kafka, Pulsar
from headgate.checkpoints import catalog
from headgate.checkpoints.restore import fork
from headgate.checkpoints.verify import verify
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.deletions import finish_deletions
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.upkeep.kept_jobs import KeptJob, Session

KEPT = {"sp-1", "portable-1"}


class KilledError(BaseException):
    """Ends a deletion as SIGKILL would: nothing after it runs but the locks are released."""


def graph_of(name: str) -> Graph:
    flow = Flow(name)
    flow.stream("orders", "id BIGINT").to("out")
    return flow.graph()


def make_big_job(root: Path, name: str = "orders") -> JobFolder:
    """Make a job with a run in its folder, one elsewhere, and savepoints of both kinds."""
    home = make_job(root, name)
    keep(home, 3)
    keep(home, 3, into=home.savepoints_folder / "sp-1")
    (home.path / "portable" / "portable-1").mkdir(parents=True)
    (home.path / "portable" / "portable-1" / "portable.json").write_text("{}")
    home.add_event(NOON, "SUBMITTED")
    run = new_run(
        home,
        graph_of(name),
        parallelism=1,
        checkpoints=root.parent / "elsewhere",
        now=datetime(2026, 11, 14, tzinfo=UTC),
    )
    write_run(home, run)
    (run.checkpoint / "state").mkdir(parents=True)
    (run.checkpoint / "state" / "1.zip").write_bytes(b"x" * 1000)
    return home


def names_in(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "jobs").iterdir())


def code_of(call: object) -> str:
    with pytest.raises(HeadgateError) as raised:
        call()  # type: ignore[operator]
    return raised.value.code


def test_delete_removes_all_of_a_job_and_nothing_of_another(tmp_path: Path) -> None:
    root = tmp_path / "home"
    make_big_job(root)
    make_job(root, "other")
    home = FolderHome(root)
    (elsewhere,) = (tmp_path / "elsewhere").iterdir()
    planned = home.preview_delete("orders")
    assert planned.dry_run
    assert home.names() == ["orders", "other"]
    done = home.delete("orders")
    assert home.names() == ["other"]
    assert names_in(root) == ["other"]
    assert not elsewhere.exists()
    assert (done.removes, done.stays, done.bytes) == (planned.removes, planned.stays, planned.bytes)
    sizes = {removal.what: removal.bytes for removal in done.removes}
    assert sizes[f"run {elsewhere.name}"] > 1000
    assert "2 savepoints" in sizes
    assert done.bytes == sum(sizes.values())


@pytest.mark.parametrize("name", ["..", ".", "", "other", "../jobs/orders", "orders/runs"])
def test_a_name_that_is_not_a_job_deletes_nothing(tmp_path: Path, name: str) -> None:
    make_big_job(tmp_path)
    assert code_of(lambda: FolderHome(tmp_path).delete(name)) == "JOB_NOT_FOUND"
    assert names_in(tmp_path) == ["orders"]


def test_a_running_job_is_not_deleted(tmp_path: Path) -> None:
    job, home = make_big_job(tmp_path), FolderHome(tmp_path)
    with job.locked():
        for call in (home.delete, home.preview_delete):
            with pytest.raises(HeadgateError, match="it is already running") as raised:
                call("orders")
            assert (raised.value.code, raised.value.hint) == (
                "JOB_RUNNING",
                "headgate cancel orders",
            )
    assert (job.path / "job.json").is_file()


def test_of_two_deletions_at_once_one_is_refused(tmp_path: Path) -> None:
    job, home = make_big_job(tmp_path), FolderHome(tmp_path)
    with job.locked(verb="delete"):
        assert code_of(lambda: home.delete("orders")) == "JOB_BUSY"
        with pytest.raises(HeadgateError, match="cannot start job 'orders': it is being deleted"):
            job.locked().__enter__()
    home.delete("orders")
    assert code_of(lambda: home.delete("orders")) == "JOB_NOT_FOUND"
    # The name was resolved before the first deletion ended.
    with pytest.raises(FileNotFoundError):
        job.locked(verb="delete").__enter__()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("created_again", [False, True])
def test_a_start_that_waited_for_a_deletion_locks_the_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created_again: bool
) -> None:
    job = make_big_job(tmp_path)
    lock, deletions = JobFolder._lock, iter([True])

    def delete_before(self: JobFolder, file: object, verb: str) -> None:
        if next(deletions, False):
            job.path.rename(job.path.with_name(".deleting.orders.1234"))
            if created_again:
                job.path.mkdir()
                (job.path / "lock").touch()
        lock(self, file, verb)  # type: ignore[arg-type]

    monkeypatch.setattr(JobFolder, "_lock", delete_before)
    with job.locked():
        monkeypatch.undo()
        assert code_of(lambda: job.locked().__enter__()) == "JOB_RUNNING"


def test_savepoints_can_stay_where_a_new_job_of_the_name_finds_them(tmp_path: Path) -> None:
    job, home = make_big_job(tmp_path), FolderHome(tmp_path)
    done = home.delete("orders", keep_savepoints=True)
    assert home.names() == []
    assert {path.name for path in job.path.iterdir()} == {"savepoints", "portable"}
    assert {path.name for path in job.path.glob("*/*")} == KEPT
    assert done.stays[:2] == (
        f"savepoints in {job.path / 'savepoints'}",
        f"savepoints in {job.path / 'portable'}",
    )
    make_job(tmp_path, "orders")
    assert [point.id for point in home.checkpoints("orders")] == ["sp-1"]


@contextmanager
def killed_at(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the block at the given change of the file system, counted from 0."""
    left = number

    def wrap(name: str) -> None:
        real = getattr(os, name)

        def change(*args: object, **options: object) -> object:
            nonlocal left
            if left == 0:
                raise KilledError
            left -= 1
            return real(*args, **options)

        monkeypatch.setattr(os, name, change)

    with monkeypatch.context():
        for name in ("rename", "unlink", "rmdir"):
            wrap(name)
        yield
    monkeypatch.undo()


@pytest.mark.parametrize("keep_savepoints", [False, True])
def test_a_kill_at_any_moment_leaves_a_job_that_can_be_deleted_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_savepoints: bool
) -> None:
    outcomes = set()
    for number in range(200):
        root = tmp_path / str(number) / "home"
        job, home = make_big_job(root), FolderHome(root)
        try:
            with killed_at(number, monkeypatch):
                home.delete("orders", keep_savepoints=keep_savepoints)
            outcomes.add("done")
        except KilledError:
            monkeypatch.undo()
            if home.names() == ["orders"]:
                outcomes.add("listed")
                home.delete("orders", keep_savepoints=keep_savepoints)
            else:
                outcomes.add("left")
                finish_deletions(root)
        assert home.names() == []
        assert names_in(root) == (["orders"] if keep_savepoints else [])
        assert list((root.parent / "elsewhere").iterdir()) == []
        if keep_savepoints:
            assert {path.name for path in job.path.glob("*/*")} == KEPT
        if "done" in outcomes:
            break
    assert outcomes == {"listed", "left", "done"}


def test_the_next_deletion_removes_what_a_killed_one_left_and_not_one_that_goes_on(
    tmp_path: Path,
) -> None:
    home = FolderHome(tmp_path)
    for name in ("dead", "busy"):
        job = make_job(tmp_path, name)
        with job.locked():
            pass
        job.path.rename(job.path.with_name(f".deleting.{name}.1234"))
    make_job(tmp_path, "orders")
    with (tmp_path / "jobs" / ".deleting.busy.1234" / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home.delete("orders")
        assert names_in(tmp_path) == [".deleting.busy.1234"]
        assert home.names() == []


def test_a_run_that_was_restored_from_a_deleted_job_is_whole(tmp_path: Path) -> None:
    job = make_job(tmp_path, "orders")
    run = job.run_folder("20261115T120000-abcdef")
    run.mkdir(parents=True)
    spark = unpack(run)
    kept = catalog.keep(spark, LAST, run / "checkpoints", facts())
    into = tmp_path / "jobs" / "other" / "runs" / "later" / "checkpoint"
    fork(kept.folder, into)
    mine, shared = sizes_in(job.path), sizes_in(into)
    done = FolderHome(tmp_path).delete("orders")
    assert verify(into) == []
    assert 0 < done.bytes == sum(size for file, size in mine.items() if file not in shared)
    assert shared.keys() & mine.keys()


def sizes_in(folder: Path) -> dict[int, int]:
    found = [file.stat() for file in folder.rglob("*") if file.is_file()]
    return {status.st_ino: status.st_size for status in found}


def test_a_checkpoint_that_a_restore_reads_keeps_the_job(tmp_path: Path) -> None:
    job = make_job(tmp_path, "orders")
    folder = keep(job, 3)
    with catalog.hold(folder, job="orders"):
        assert code_of(lambda: FolderHome(tmp_path).delete("orders")) == "JOB_BUSY"
    FolderHome(tmp_path).delete("orders")


def test_a_job_whose_folder_has_checkpoints_of_another_is_refused(tmp_path: Path) -> None:
    make_job(tmp_path, "orders")
    other = make_job(tmp_path, "other")
    inside = JobFolder(tmp_path, "orders").path / "kept"
    run = new_run(other, graph_of("other"), parallelism=1, checkpoints=inside, now=NOON)
    write_run(other, run)
    run.checkpoint.mkdir(parents=True)
    assert code_of(lambda: FolderHome(tmp_path).delete("orders")) == "JOB_IN_USE"
    FolderHome(tmp_path).delete("other")
    FolderHome(tmp_path).delete("orders")
    assert names_in(tmp_path) == []


def test_a_job_with_corrupted_files_is_deleted(tmp_path: Path) -> None:
    job = make_big_job(tmp_path / "home")
    for file in ("status.json", "job.json", "events.jsonl"):
        (job.path / file).write_text("{")
    FolderHome(job.root).delete("orders")
    assert names_in(job.root) == []


def test_a_job_whose_folder_is_a_link_is_deleted_with_its_files(tmp_path: Path) -> None:
    job, disk = make_job(tmp_path, "orders"), tmp_path / "disk"
    job.path.rename(disk)
    job.path.symlink_to(disk)
    FolderHome(tmp_path).delete("orders")
    assert not disk.exists()
    assert names_in(tmp_path) == []


def test_a_server_forgets_a_deleted_job(tmp_path: Path) -> None:
    make_job(tmp_path, "orders")
    session = Session(tmp_path)
    session.keep(KeptJob("orders", NOON, "ann"))
    session.keep(KeptJob("other", NOON, "ann"))
    FolderHome(tmp_path).delete("orders")
    assert list(session.list()) == ["other"]


def test_what_stays_is_named(tmp_path: Path) -> None:
    job = make_job(tmp_path, "orders")
    flow = Flow("orders", dead_letters=Kafka("bad", servers="k:9092"))
    flow.stream(Kafka("orders", servers="k:9092"), "id BIGINT").to(Kafka("out", servers="k:9092"))
    flow.stream(Pulsar("visits", service="pulsar://p"), "id BIGINT").to(
        Pulsar("seen", service="pulsar://p")
    )
    run = new_run(job, flow.graph(), parallelism=1, checkpoints=None, now=NOON)
    write_run(job, run)
    job.write_job(run.lineage, flow="flow.py", options={})
    elsewhere = keep(job, 3, into=tmp_path / "backup")
    for folder in (elsewhere, tmp_path / "gone", job.savepoints_folder / "sp"):
        job.add_event(NOON, "SAVEPOINT", folder=str(folder))
    stays = FolderHome(tmp_path).preview_delete("orders").stays
    assert stays == (
        "topics on kafka://k:9092: orders, out, bad, headgate-epochs",
        "topics on pulsar://p:6650: visits, seen",
        "consumer group 'orders' on kafka://k:9092",
        "subscription 'orders' of topic 'visits' on pulsar://p:6650",
        f"savepoint {elsewhere.resolve()}",
    )
    assert json.loads((elsewhere / "manifest.json").read_text())
