"""The first start of a job may be killed before an attempt runs: it can be repeated.

No attempt ever runs here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from server_bench import store_job
from stored_run import LAST

from headgate.cli.parts.status import start_line
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import find_run
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

FLOW = """
from headgate import Flow
flow = Flow("shop")
flow.stream("orders", "id BIGINT").to("out")
"""


class KilledError(Exception):
    """Ends a start as a kill would: nothing more is written of it."""


class KilledLauncher:
    """Launches attempts that never run: the supervisor is killed as it listens to the first."""

    pid = 4711

    def launch(self, _spec: Any) -> Any:
        return self

    def news(self, _seconds: float) -> Any:
        raise KilledError

    def kill(self) -> None:
        """Nothing was started."""

    def clean_up(self) -> None:
        """Nothing was started."""


class Desk:
    """A flow, a home without jobs, and starts that are killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = JobFolder(folder / "home", "shop")
        (folder / "flow.py").write_text(FLOW)

    def start(self, **options: Any) -> JobSnapshot:
        chosen = {"home": self.home.root, "on": f"files:{self.folder / 'topics'}", **options}
        return self.repeat("flow.py", RunOptions(**chosen))

    def repeat(self, flow: str, options: RunOptions) -> JobSnapshot:
        """Start a job, and return how it was when the start was killed."""
        seen: list[JobSnapshot] = []
        with pytest.raises(KilledError):
            run_job(flow, options, Watcher(on_snapshot=seen.append), launcher=KilledLauncher())
        return seen[-1]

    def last_start(self) -> tuple[str, RunOptions]:
        return FolderHome(self.home.root).last_start("shop")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    return Desk(tmp_path)


@pytest.fixture
def backup(desk: Desk) -> Path:
    """Give a savepoint of another home."""
    other = store_job(desk.folder / "other")
    return Path(shutil.copytree(other.savepoints_folder / "before", desk.folder / "backup"))


def test_a_first_start_that_was_killed_is_repeated_by_start(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.start(retain=3)
    (view,) = FolderHome(desk.home.root).jobs()
    assert (view.state, view.todo) == ("DEAD", "headgate start shop")
    assert desk.home.find_present_run() is None, "no attempt has run"
    (desk.folder / "another").mkdir()
    monkeypatch.chdir(desk.folder / "another")
    for _ in range(2):
        flow, options = desk.last_start()
        assert (flow, options.retain) == (str(desk.folder / "flow.py"), 3)
        assert desk.repeat(flow, options).resumed_from is None


def test_the_options_are_those_of_the_last_start(desk: Desk) -> None:
    desk.start(retain=3)
    desk.start(retain=4, fresh=True)
    _, options = desk.last_start()
    assert (options.retain, options.fresh) == (4, False)


def test_what_a_killed_first_start_was_to_restore_is_restored(desk: Desk, backup: Path) -> None:
    desk.start(restore_from="backup")
    flow, options = desk.last_start()
    assert options.restore_from == str(backup)
    again = desk.repeat(flow, options)
    run = find_run(desk.home, again.lineage)
    assert run is not None
    assert run.origin is not None
    assert run.origin.checkpoint == "backup"


def test_a_killed_start_does_not_replace_a_run_nor_a_file_that_was_removed(
    desk: Desk, tmp_path: Path
) -> None:
    home = store_job(tmp_path / "other")
    file = home.path / "job.json"
    before = file.read_bytes()
    desk.start(home=home.root, fresh=True)
    assert file.read_bytes() == before
    file.unlink()
    desk.start(home=home.root, fresh=True)
    assert not file.exists(), "a run of the job has written output"
    (view,) = FolderHome(home.root).jobs()
    assert (view.state, view.todo) == ("DEAD", "headgate run FLOW")


@pytest.mark.parametrize("parallelism", [None, 3], ids=["as it was", "by uid"])
def test_a_restored_start_reports_its_checkpoint(
    desk: Desk, backup: Path, parallelism: int | None
) -> None:
    started = desk.start(restore_from=str(backup), parallelism=parallelism)
    assert start_line(started) == (
        f"Job 'shop' resumes run {started.lineage} from checkpoint chk-{LAST}"
    )


def test_a_first_start_reports_that_it_is_empty(desk: Desk) -> None:
    started = desk.start()
    assert start_line(started) == f"Job 'shop' starts empty, in run {started.lineage}"


def test_a_start_removes_what_a_killed_deletion_left(desk: Desk) -> None:
    left = desk.home.path.with_name(".deleting.orders.1234")
    left.mkdir(parents=True)
    (left / "status.json").write_text("{}")
    desk.start()
    assert not left.exists()
