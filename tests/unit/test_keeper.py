"""Keeping checkpoints while a savepoint is copied from one of them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from fake_clock import FakeClock
from stored_run import LAST, unpack

from headgate.checkpoints.catalog import list_kept, read_kept
from headgate.checkpoints.verify import verify
from headgate.jobs.checkpoints import keeper as keepers
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run
from headgate.jobs.values import RunOptions

JOB, RUN = "shop", "20261115T152501-31b689"


def test_a_checkpoint_that_is_being_copied_is_not_thinned_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = JobFolder(tmp_path / "home", JOB)
    home.run_folder(RUN).mkdir(parents=True)
    unpack(home.run_folder(RUN))
    run = find_run(home, RUN)
    assert run is not None
    options = RunOptions(checkpoint_every=timedelta(0), retain=1, retain_for=None)
    keeper = CheckpointKeeper(home, run, options, FakeClock())
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
