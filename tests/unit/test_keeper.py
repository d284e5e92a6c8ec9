"""Keeping checkpoints: when one is due, and while a savepoint is copied from another."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock, SlowClock
from stored_run import LAST, facts, local, unpack

from headgate.checkpoints.catalog import keep, list_kept, read_kept
from headgate.checkpoints.verify import verify
from headgate.engine.attempt.progress import BatchReport, SourceProgress
from headgate.jobs.checkpoints import keeper as keepers
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, find_run, write_run
from headgate.jobs.values import RunOptions

JOB, RUN = "shop", "20261115T152501-31b689"


def stored(folder: Path) -> tuple[JobFolder, Run]:
    """Return a job whose run is the stored one."""
    home = JobFolder(folder / "home", JOB)
    home.run_folder(RUN).mkdir(parents=True)
    unpack(home.run_folder(RUN))
    run = find_run(home, RUN)
    assert run is not None
    return home, run


def report(batch: int, clock: FakeClock) -> BatchReport:
    return BatchReport(
        batch=batch,
        started=clock.now(),
        duration=timedelta(0),
        sources={"orders": SourceProgress(5, None, None, None, "{}")},
        outputs={},
        state={},
        phases={},
    )


def test_the_last_batch_of_a_quiet_job_is_kept_once_the_interval_has_passed(tmp_path: Path) -> None:
    home, run = stored(tmp_path)
    clock = FakeClock()
    keeper = CheckpointKeeper(home, run, RunOptions(checkpoint_every=timedelta(seconds=5)), clock)
    assert keeper.take_due() is None, "no batch has committed"

    def keep_due() -> tuple[str, int] | None:
        keep = keeper.take_due()
        if keep is None:
            return None
        kept = read_kept(home.checkpoints_folder(RUN) / keep()["checkpoint"])
        return kept.id, kept.sources["orders"].records

    keeper.batch_committed(report(LAST - 2, clock))
    assert keep_due() == (f"chk-{LAST - 2}", 5), "the first batch is kept at once"
    for batch in (LAST - 1, LAST):
        clock.advance(seconds=1)
        keeper.batch_committed(report(batch, clock))
        assert keep_due() is None
    clock.advance(seconds=2.9)
    assert keep_due() is None
    clock.advance(seconds=0.1)
    assert keep_due() == (f"chk-{LAST}", 15)
    clock.advance(seconds=60)
    assert keep_due() is None, "the last batch is kept already"


def make_keeper(home: JobFolder, run: Run, clock: FakeClock) -> CheckpointKeeper:
    options = RunOptions(checkpoint_every=timedelta(0), retain=1, retain_for=None)
    return CheckpointKeeper(home, run, options, clock)


def test_the_event_of_a_checkpoint_and_the_checkpoint_agree_on_how_long_it_took(
    tmp_path: Path,
) -> None:
    home, run = stored(tmp_path)
    keeper = make_keeper(home, run, SlowClock())
    event = keeper.keep_last()
    assert event is not None
    (kept,) = list_kept(home.checkpoints_folder(RUN))
    assert (event["took_ms"], kept.took) == (30, timedelta(milliseconds=30))
    saved = keeper.begin_savepoint(str(tmp_path / "taken"))(lambda: False)
    assert (saved["took_ms"], read_kept(tmp_path / "taken").took) == (30, kept.took)


def test_a_checkpoint_that_is_being_copied_is_not_thinned_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, run = stored(tmp_path)
    keeper = make_keeper(home, run, FakeClock())
    last = [LAST - 2]
    monkeypatch.setattr(keepers, "find_last_commit", lambda _checkpoint: last[0])

    def list_names() -> list[str]:
        return [each.id for each in list_kept(home.checkpoints_folder(RUN))]

    names_while_copying: list[str] = []

    def is_abandoned() -> bool:
        # Asked while the files are copied.
        if not names_while_copying:
            last[0] = LAST - 1
            keeper.keep_last()
            names_while_copying.extend(list_names())
        return False

    take = keeper.begin_savepoint(str(tmp_path / "taken"))
    assert take(is_abandoned)["batch"] == LAST - 2
    assert names_while_copying == [f"chk-{LAST - 2}", f"chk-{LAST - 1}"]
    last[0] = LAST
    keeper.keep_last()
    assert list_names() == [f"chk-{LAST}"]
    assert (verify(tmp_path / "taken"), read_kept(tmp_path / "taken").batch) == ([], LAST - 2)


def move_run(home: JobFolder, run: Run, to: Path) -> Run:
    """Return the run as one whose checkpoints are in a folder of the user's."""
    moved = replace(run, checkpoint=to / RUN / "checkpoint")
    shutil.copytree(local(run.checkpoint), local(moved.checkpoint))
    shutil.rmtree(local(run.checkpoint))
    write_run(home, moved)
    return moved


def test_checkpoints_are_kept_in_the_folder_that_the_user_chose(tmp_path: Path) -> None:
    home, own = stored(tmp_path)
    run = move_run(home, own, tmp_path / "elsewhere")
    keeper = CheckpointKeeper(home, run, RunOptions(), FakeClock())
    keeper.keep_last()
    folder = tmp_path / "elsewhere" / RUN / "checkpoints"
    assert [each.folder for each in list_kept(folder)] == [folder / f"chk-{LAST}"]
    assert home.checkpoints_folder(RUN) == folder
    assert not (home.run_folder(RUN) / "checkpoints").exists()
    assert CheckpointKeeper(home, run, RunOptions(), FakeClock()).newest == f"chk-{LAST}"


def test_a_run_of_an_earlier_release_keeps_its_checkpoints_where_they_are(tmp_path: Path) -> None:
    home, own = stored(tmp_path)
    run = move_run(home, own, tmp_path / "elsewhere")
    folder = home.run_folder(RUN) / "checkpoints"
    keep(run.checkpoint, LAST - 1, folder, facts(lineage=RUN))
    keeper = CheckpointKeeper(home, run, RunOptions(), FakeClock())
    assert keeper.newest == f"chk-{LAST - 1}"
    keeper.keep_last()
    assert [each.id for each in list_kept(folder)] == [f"chk-{LAST - 1}", f"chk-{LAST}"]
