"""The verbs on checkpoints, on a small run that Spark made: list, show, pin, verify, savepoint."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cli_runs import run
from fake_clock import SlowClock
from stored_run import LAST, NOON, facts, local, unpack

from headgate import Flow
from headgate._codec import encode
from headgate.checkpoints import savepoint as savepoints
from headgate.checkpoints.catalog import keep, read_kept
from headgate.checkpoints.verify import verify
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.values import RunOptions

IDS = ["chk-18", "chk-19", "chk-20"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    """Give a job that has stopped: three kept checkpoints and a savepoint."""
    monkeypatch.chdir(tmp_path)
    home = JobFolder(Path(".headgate"), "shop")
    flow = Flow("shop")
    flow.stream("orders", "id BIGINT").to("out")
    run = new_run(
        home,
        flow.graph(),
        parallelism=2,
        checkpoints=None,
        now=datetime(2026, 11, 15, tzinfo=UTC),
    )
    write_run(home, run)
    home.write_job(run.lineage, flow="flow.py", options=encode(RunOptions()))
    home.write_status({"state": "STOPPED", "lineage": run.lineage})
    run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    unpack(local(run.checkpoint).parent)
    for number in range(LAST - 2, LAST + 1):
        keep(
            run.checkpoint,
            number,
            home.checkpoints_folder(run.lineage),
            facts(lineage=run.lineage, completed_at=NOON + timedelta(minutes=number)),
            clock=SlowClock(),
        )
    later = facts(lineage=run.lineage, completed_at=NOON + timedelta(hours=1))
    savepoints.create(run.checkpoint, LAST, home.savepoints_folder / "before", later)
    return home


def kept(home: JobFolder, checkpoint: str) -> Path:
    (folder,) = home.path.glob(f"runs/*/checkpoints/{checkpoint}")
    return folder


def test_checkpoints_lists_them_oldest_first_with_all_there_is_to_know(home: JobFolder) -> None:
    lines = run("checkpoints", "shop").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [*IDS, "before"]
    assert re.fullmatch(
        r"chk-20 +2026-11-15 12:20:00 +30ms +12 +2026-11-15 11:59:55 +15 +3KiB +\S+iB +\S+iB"
        r" +COMPLETED +checkpoint +-",
        lines[3],
    )
    assert lines[4].split()[-3:] == ["COMPLETED", "savepoint", "-"]


def test_checkpoints_as_json_has_positions_and_state_by_operator(home: JobFolder) -> None:
    told = json.loads(run("checkpoints", "shop", "--json").stdout)
    last = told[2]
    assert (last["id"], last["kind"], last["status"], last["pinned"]) == (
        "chk-20",
        "checkpoint",
        "COMPLETED",
        False,
    )
    assert last["sources"]["orders"] == {"records": 12, "position": {"file": 3, "byte": 0}}
    assert last["sources"]["users"]["position"] is None
    assert last["state"]["with-user"] == {"rows": 10, "bytes": 2048}
    assert last["new_bytes"] < last["full_bytes"]
    assert (last["took_ms"], last["duration_ms"]) == (30, 250)


def test_a_job_without_checkpoints_says_so(home: JobFolder) -> None:
    JobFolder(home.root, "young").write_status({"state": "STARTING"})
    assert "no checkpoints yet" in run("checkpoints", "young").stdout
    assert run("checkpoints", "young", "--json").stdout == "[]\n"
    result = run("checkpoints", "young", "show", "latest")
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize("name", ["chk-19", "19"])
def test_show_has_one_checkpoint_with_its_sources_and_operators(home: JobFolder, name: str) -> None:
    shown = run("checkpoints", "shop", "show", name).stdout
    assert "checkpoint  chk-19\n" in shown
    # What the console calls the same: a batch's time includes the wait for its records.
    assert re.search(r"^took +30ms$", shown, re.MULTILINE)
    assert re.search(r"^batch took +250ms$", shown, re.MULTILINE)
    assert re.search(r'orders +12 +{"file":3,"byte":0}', shown)
    assert re.search(r"with-user +10 +2KiB", shown)


def test_latest_is_the_newest_of_all(home: JobFolder) -> None:
    told = json.loads(run("checkpoints", "shop", "show", "latest", "--json").stdout)
    assert told["id"] == "before"


def test_a_checkpoint_is_pinned_until_it_is_unpinned(home: JobFolder) -> None:
    assert run("checkpoints", "shop", "pin", "chk-19").stdout == "chk-19 is pinned\n"
    told = json.loads(run("checkpoints", "shop", "--json").stdout)
    assert [each["id"] for each in told if each["pinned"]] == ["chk-19"]
    assert run("checkpoints", "shop", "unpin", "chk-19").stdout == "chk-19 is not pinned\n"
    assert not json.loads(run("checkpoints", "shop", "show", "19", "--json").stdout)["pinned"]


def test_a_checkpoint_that_is_not_kept_is_refused_with_those_that_are(home: JobFolder) -> None:
    for action in ("show", "pin", "unpin"):
        result = run("checkpoints", "shop", action, "chk-9")
        assert result.exit_code == 2
        assert "error CHECKPOINT_NOT_FOUND" in result.stderr
        assert "it has before, chk-20, chk-19, chk-18" in result.stderr
    assert "error BAD_USAGE" in run("checkpoints", "shop", "show").stderr
    assert "error BAD_USAGE" in run("checkpoints", "shop", "drop", "chk-20").stderr


def test_checkpoints_of_an_earlier_run_are_found_when_asked_for(home: JobFolder) -> None:
    home.write_job("second", flow="flow.py", options=encode(RunOptions()))
    listed = json.loads(run("checkpoints", "shop", "--json").stdout)
    assert [each["id"] for each in listed] == ["before"]
    lines = run("checkpoints", "shop", "--all").stdout.splitlines()
    (first,) = (each["run"] for each in listed)
    names = [f"{first}/{each}" for each in IDS]
    assert [line.split()[0] for line in lines[1:]] == [*names, "before"]
    assert run("checkpoints", "shop", "pin", names[1]).exit_code == 0
    every = json.loads(run("checkpoints", "shop", "--all", "--json").stdout)
    assert [each["restore_from"] for each in every] == [*names, "before"]
    assert [each["pinned"] for each in every] == [False, True, False, False]


def test_the_plan_of_a_restore_has_the_run_estimates_and_warnings(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = RestorePlan(
        checkpoint="chk-19",
        run="20261115T000000-abcdef",
        kind="checkpoint",
        completed_at=NOON,
        folder=Path("chk-19"),
        as_it_was=False,
        state_taken=(),
        state_dropped=("with-users",),
        starts_empty=("with-user",),
        records_again={"orders": 7_000, "users": 3, "items": None},
        records_estimated=("orders",),
        outputs_with_repeats=("out",),
        warnings=("operator 'with-user' starts empty",),
    )
    monkeypatch.setattr(FolderHome, "preview_restore", lambda *_, **__: plan)
    result = run("restore", "shop", "--from", "chk-19", "--dry-run")
    assert "From checkpoint chk-19 of run 20261115T000000-abcdef, complete at" in result.stdout
    assert re.search(r"orders +about 7,000\n.*users +3\n.*items +unknown", result.stdout, re.DOTALL)
    assert "warning: operator 'with-user' starts empty" in result.stderr


def test_verify_is_content_with_what_is_whole(home: JobFolder) -> None:
    result = run("verify", "--files-only", "shop")
    assert result.exit_code == 0
    names = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert names == [*IDS, "before", "present"]
    assert run("verify", "--files-only", str(kept(home, "chk-20"))).stdout.startswith(
        "chk-20: all is well"
    )
    assert run("verify", "--files-only", str(home.savepoints_folder / "before")).exit_code == 0


def test_verify_prints_each_problem_and_ends_with_3(home: JobFolder) -> None:
    folder = kept(home, "chk-20")
    (folder / "commits" / "20").unlink()
    # Its links in other folders stay whole.
    (folder / "offsets" / "19").unlink()
    (folder / "offsets" / "19").write_text("v1\n{}")
    result = run("verify", "--files-only", "shop")
    assert result.exit_code == 3
    assert "chk-20: 2 files are wrong" in result.stdout
    assert "  commits/20: it is missing" in result.stdout
    assert "  offsets/19: it is truncated" in result.stdout
    assert "chk-19: all is well" in result.stdout
    told = json.loads(run("verify", "--files-only", "shop", "--json").stdout)
    assert [each["id"] for each in told if each["problems"]] == ["chk-20"]
    assert run("verify", "--files-only", str(folder)).exit_code == 3


def test_a_checkpoint_whose_manifest_is_damaged_is_listed_as_such(home: JobFolder) -> None:
    (kept(home, "chk-19") / "checkpoint.json").write_text("{")
    told = json.loads(run("checkpoints", "shop", "--json").stdout)
    assert {each["id"]: each["status"] for each in told} == {
        "chk-19": "DAMAGED",
        "chk-18": "COMPLETED",
        "chk-20": "COMPLETED",
        "before": "COMPLETED",
    }
    assert run("checkpoints", "shop").exit_code == 0
    assert run("checkpoints", "shop", "show", "chk-19").exit_code == 0
    assert run("verify", "--files-only", "shop").exit_code == 3


def test_verify_of_neither_a_job_nor_a_folder_is_refused(home: JobFolder) -> None:
    result = run("verify", "--files-only", "shp")
    assert (result.exit_code, "JOB_NOT_FOUND" in result.stderr) == (2, True)


def test_a_savepoint_of_a_job_at_rest_is_taken_from_its_last_batch(
    home: JobFolder, tmp_path: Path
) -> None:
    result = run("savepoint", "shop", "--to", "kept")
    assert result.exit_code == 0, result.stderr
    assert str(tmp_path / "kept") in result.stdout
    assert (verify(tmp_path / "kept"), read_kept(tmp_path / "kept").batch) == ([], LAST)
    again = run("savepoint", "shop", "--to", "kept")
    assert (again.exit_code, "CHECKPOINT_EXISTS" in again.stderr) == (2, True)
    told = json.loads(run("savepoint", "shop", "--json").stdout)
    assert Path(told["folder"]).parent == home.savepoints_folder.absolute()
