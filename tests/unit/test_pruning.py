"""Pruning: files of old runs go, and everything that a job can go back to stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from past_jobs import NOON, keep, make_job
from stored_run import local

from headgate import Flow
from headgate.checkpoints import catalog
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import find_target
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Origin, new_run, write_run


class Past:
    """A job with a run that it left, one that it comes from, others, and savepoints.

    Attributes:
        first: The run that the present one comes from.
        left: A run that a restore left behind; chk-4 is pinned.
        other: A run before a start with --fresh.
        bare: Likewise, without checkpoints, its files in another folder.
    """

    def __init__(self, root: Path) -> None:
        self.job = make_job(root / "home", "orders")
        self.outside = root / "outside"
        self._count = 0
        self.other = self.run(9)
        self.bare = self.run(checkpoints=self.outside)
        self.first = self.run(1, 2, 3)
        self.left = self.run(3, 4, origin=self.first)
        self.present = self.run(3, origin=self.first)
        catalog.pin(self.kept(self.left) / "chk-4", job="orders")
        self.job.write_job(self.present, flow="flow.py", options={})
        self.job.write_status({"state": "STOPPED", "lineage": self.present, "checkpoint": None})
        keep(self.job, 9, run=self.other, into=self.job.savepoints_folder / "sp-9")
        with self.job.locked():
            # The lock's file has its size by now.
            pass

    def run(self, *kept: int, origin: str | None = None, checkpoints: Path | None = None) -> str:
        """Make a run with checkpoints, each with a file of its own and one of Spark's."""
        self._count += 1
        flow = Flow("orders")
        flow.stream("orders", "id BIGINT").to("out")
        now = NOON + timedelta(minutes=self._count)
        run = new_run(self.job, flow.graph(), parallelism=1, checkpoints=checkpoints, now=now)
        if origin is not None:
            run = replace(run, origin=Origin("chk-2", origin, 2))
        write_run(self.job, run)
        (run.checkpoint / "state").mkdir(parents=True)
        (run.checkpoint / "sources").mkdir()
        (run.checkpoint / "sources" / "0").write_text("start")
        (run.checkpoint / "state" / "shared.zip").write_bytes(b"x" * 5000)
        (run.checkpoint / "state" / "own.zip").write_bytes(b"x" * 300)
        for batch in kept:
            folder = keep(self.job, batch, run=run.lineage)
            (folder / "state").mkdir()
            (folder / "state" / "shared.zip").hardlink_to(
                local(run.checkpoint) / "state" / "shared.zip"
            )
        return run.lineage

    def kept(self, lineage: str) -> Path:
        return local(self.job.checkpoints_folder(lineage))

    def names(self, lineage: str) -> set[str]:
        """Return what is left of a run: its files and folders, two levels deep."""
        folder = self.job.run_folder(lineage)
        return {
            path.relative_to(folder).as_posix()
            for pattern in ("*", "*/*")
            for path in folder.glob(pattern)
        }

    def size(self) -> int:
        files = [*self.job.root.rglob("*"), *self.outside.rglob("*")]
        return sum(
            {file.stat().st_ino: file.stat().st_size for file in files if file.is_file()}.values()
        )


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


def test_a_prune_keeps_all_that_a_job_can_go_back_to(past: Past) -> None:
    home = FolderHome(past.job.root)
    before, points = past.size(), [point.folder for point in home.checkpoints("orders")]
    names = past.names(past.present)
    planned = home.prune("orders", dry_run=True)
    assert past.size() == before
    done = home.prune("orders")
    assert (done.removes, done.stays, done.bytes) == (planned.removes, planned.stays, planned.bytes)
    assert (planned.dry_run, done.dry_run) == (True, False)
    assert before - past.size() == done.bytes > 3 * 300 + 5300
    assert past.names(past.present) == names
    assert [point.folder for point in home.checkpoints("orders")] == points
    kept = {f"checkpoints/chk-{batch}" for batch in (1, 2, 3)}
    spark = {"checkpoint", "checkpoint/sources"}
    assert past.names(past.first) == {"run.json", "checkpoints", *kept, *spark}
    assert past.names(past.left) >= {"run.json", "checkpoints/chk-3", "checkpoints/chk-4"}
    assert "checkpoint" not in past.names(past.left) | past.names(past.other)
    assert not past.job.run_folder(past.bare).exists()
    assert list(past.outside.iterdir()) == []
    for source in ("chk-1", f"{past.other}/chk-9", f"{past.left}/chk-3", "sp-9"):
        assert find_target(past.job, source=source, at=None, now=NOON)
    assert home.prune("orders").removes == ()


def test_checkpoints_of_other_runs_go_if_that_is_asked_for_unless_they_are_pinned(
    past: Past,
) -> None:
    home = FolderHome(past.job.root)
    before = past.size()
    with catalog.hold(past.kept(past.other) / "chk-9", job="orders"):
        held = home.prune("orders", drop_checkpoints=True, dry_run=True)
    assert f"1 checkpoint of run {past.other}: chk-9" in held.stays
    done = home.prune("orders", drop_checkpoints=True)
    assert before - past.size() == done.bytes
    assert not past.job.run_folder(past.other).exists()
    # An audit needs its manifest, to tell its rows from those of the present run.
    left = past.names(past.left)
    assert "run.json" in left
    assert {name for name in left if "chk" in name} == {"checkpoints/chk-4"}
    assert len(list(past.kept(past.first).iterdir())) == 3
    assert f"1 checkpoint of run {past.left}: chk-4" in done.stays
    assert (past.job.savepoints_folder / "sp-9").is_dir()


def test_a_run_that_is_being_created_stays_while_the_job_runs(past: Past) -> None:
    newer = past.run(1)
    with past.job.locked():
        FolderHome(past.job.root).prune("orders", drop_checkpoints=True)
    assert past.job.run_folder(newer).exists()
    assert not past.job.run_folder(past.other).exists()
    FolderHome(past.job.root).prune("orders", drop_checkpoints=True)
    assert not past.job.run_folder(newer).exists()


def test_a_run_that_cannot_be_read_stays_and_a_broken_lineage_is_refused(past: Past) -> None:
    (past.job.run_folder(past.other) / "run.json").write_text("{")
    done = FolderHome(past.job.root).prune("orders", drop_checkpoints=True)
    assert any(past.other in line and "cannot be read" in line for line in done.stays)
    assert (past.kept(past.other) / "chk-9").is_dir()
    (past.job.run_folder(past.first) / "run.json").write_text("{")
    with pytest.raises(HeadgateError, match="JOB_FILE_BROKEN"):
        FolderHome(past.job.root).prune("orders")


def test_a_job_whose_present_run_is_not_known_is_not_pruned(past: Past) -> None:
    (past.job.path / "job.json").unlink()
    before = past.size()
    with pytest.raises(HeadgateError, match="JOB_FILE_MISSING"):
        FolderHome(past.job.root).prune("orders", drop_checkpoints=True)
    assert past.size() == before


def test_what_a_killed_prune_left_goes_with_the_next_one(past: Past) -> None:
    home = FolderHome(past.job.root)
    left = past.job.run_folder(past.bare)
    left.rename(left.with_name(f"{past.bare}.tmp-1-ab"))
    spark = past.job.run_folder(past.other) / "checkpoint"
    spark.rename(spark.with_name("checkpoint.tmp-1-ab"))
    home.prune("orders")
    assert not list(past.job.path.rglob("*.tmp-*"))


def test_a_job_without_runs_has_nothing_to_prune(tmp_path: Path) -> None:
    JobFolder(tmp_path, "orders").write_status({"state": "FAILED"})
    assert FolderHome(tmp_path).prune("orders").removes == ()
