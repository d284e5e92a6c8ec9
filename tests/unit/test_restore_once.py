"""A restore is resolved once: the run follows the plan that was shown, or refuses it.

Java is a script here that fails at once, so that an attempt ends before there is any Spark.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from server_bench import client, follow, settings, store_job
from stored_run import LAST, NOON, facts, local
from typer.testing import CliRunner

import headgate
from headgate import HeadgateError
from headgate._clock import SystemClock
from headgate._codec import decode, encode
from headgate.checkpoints.catalog import hold, keep, list_kept, remove
from headgate.cli.app import app
from headgate.connectors.logs import bind, parse_log
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.control.restore_start import (
    RestoreStart,
    hold_checkpoint,
    prepare_restore,
)
from headgate.jobs.flow_file import load_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.runs.lineage import Run, find_run, write_run
from headgate.jobs.startup.opening import open_run
from headgate.jobs.startup.start import Start

NOTE = """
import os, pathlib
with pathlib.Path({file!r}).open("a") as executions:
    executions.write(f"{{os.getpid()}}\\n")
"""


class Shop:
    """A job with three checkpoints, whose flow notes every execution of its file."""

    def __init__(self, folder: Path) -> None:
        self._topics = str(folder / "topics")
        self.home = store_job(folder, restart="none", on=f"files:{self._topics}")
        self.flow = folder / "flows" / "shop.py"
        self._executions = folder / "executions"
        self.flow.write_text(self.flow.read_text() + NOTE.format(file=str(self._executions)))

    def executions(self) -> list[str]:
        """Return the processes that executed the flow's file, once for each time."""
        return self._executions.read_text().split() if self._executions.exists() else []

    def kept(self, checkpoint: str) -> Path:
        """Return the folder of a checkpoint of the first run."""
        return self._kept_folder() / checkpoint

    def keep(self, batch: int, at: datetime) -> None:
        """Keep another checkpoint of the first run."""
        run = find_run(self.home, str(self.home.find_present_run()))
        assert run is not None
        told = facts(
            lineage=run.lineage,
            completed_at=at,
            operators=(),
            # The stored run had its topics in another folder.
            flow=json.loads(run.flow.to_json().replace("/srv/shop/topics", self._topics)),
        )
        keep(run.checkpoint, batch, self._kept_folder(), told)

    def move_run(self, to: Path) -> None:
        """Make the first run one that was started with `--checkpoints`."""
        lineage = str(self.home.find_present_run())
        run = find_run(self.home, lineage)
        assert run is not None
        # The stored manifest is of a run with another name.
        moved = replace(run, lineage=lineage, checkpoint=to / lineage / "checkpoint")
        shutil.move(self._kept_folder(), local(moved.checkpoint).with_name("checkpoints"))
        shutil.move(local(run.checkpoint), local(moved.checkpoint))
        write_run(self.home, moved)

    def prepare(self, **chosen: Any) -> RestoreStart:
        """Return a restore as it is shown to the user."""
        return prepare_restore(self.home, **{"source": None, "at": None, **chosen})

    def open(self, start: RestoreStart) -> Run:
        """Open the run of a start in the job's process, which gets the plan as JSON."""
        graph = bind(load_flow(str(self.flow)).graph, parse_log(start.options.on))
        sealed = decode(SealedPlan, json.loads(json.dumps(encode(start.sealed))))
        with self.home.locked():
            run, _ = open_run(Start(self.home, graph, start.options, SystemClock()), restore=sealed)
        return run

    def _kept_folder(self) -> Path:
        return local(self.home.checkpoints_folder(str(self.home.find_present_run())))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(headgate.__file__).parents[1]))
    programs = tmp_path / "bin"
    programs.mkdir()
    java = programs / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return Shop(tmp_path)


def refusal(shop: Shop, start: RestoreStart) -> str:
    """Return the code with which a start is refused; no run is left of it."""
    before = sorted((shop.home.path / "runs").iterdir())
    with pytest.raises(HeadgateError) as caught:
        shop.open(start)
    left = [each for each in (shop.home.path / "runs").iterdir() if (each / "run.json").exists()]
    assert sorted(left) == before
    return caught.value.code


def origins(home: JobFolder) -> list[str]:
    """Return the checkpoints that runs of a job were restored from."""
    runs = [find_run(home, folder.name) for folder in sorted((home.path / "runs").iterdir())]
    return [run.origin.checkpoint for run in runs if run is not None and run.origin is not None]


def wait_for_end(home: JobFolder) -> None:
    eventually(lambda: not has_supervisor(home), what=lambda: home.find_json("status.json"))


# How often the user's file is executed.


def test_a_restore_in_the_foreground_executes_the_flow_once(shop: Shop) -> None:
    done = CliRunner().invoke(app, ["restore", "shop", "--from", "chk-18"])
    assert "From checkpoint chk-18" in done.output
    assert origins(shop.home) == ["chk-18"]
    assert shop.executions() == [str(os.getpid())]


def test_a_restore_in_the_background_executes_the_flow_once_here_and_once_there(
    shop: Shop,
) -> None:
    done = CliRunner().invoke(app, ["restore", "shop", "--from", "chk-18", "--detach"])
    assert done.exit_code == 0, done.output
    wait_for_end(shop.home)
    assert origins(shop.home) == ["chk-18"]
    here, there = shop.executions()
    assert here == str(os.getpid()) != there


def test_a_restore_through_a_server_executes_the_flow_once_to_plan_and_once_to_run(
    shop: Shop, tmp_path: Path
) -> None:
    with client(settings(tmp_path)) as web:
        ended = follow(web, web.post("/v1/jobs/shop/restore", json={"from": "chk-18"}))
    assert ended["state"] == "DONE", ended
    assert ended["result"]["restored"]["checkpoint"] == "chk-18"
    assert "manifest_sha256" not in ended["result"]["restored"]
    wait_for_end(shop.home)
    assert origins(shop.home) == ["chk-18"]
    # Never in the server itself.
    planned, ran = shop.executions()
    assert len({planned, ran, str(os.getpid())}) == 3


def test_a_dry_run_executes_the_flow_once_and_starts_nothing(shop: Shop) -> None:
    done = CliRunner().invoke(app, ["restore", "shop", "--at", "1s ago", "--dry-run", "--json"])
    assert json.loads(done.stdout)["checkpoint"] == "before"
    assert len(shop.executions()) == 1
    assert origins(shop.home) == []


# The plan that was shown is followed, or refused.


def test_a_moment_means_the_checkpoint_that_was_shown_although_another_fits_by_now(
    shop: Shop,
) -> None:
    moment = (NOON + timedelta(minutes=LAST, seconds=30)).isoformat()
    start = shop.prepare(at=moment)
    assert start.plan.checkpoint == f"chk-{LAST}"
    shop.keep(LAST - 3, NOON + timedelta(minutes=LAST, seconds=10))
    assert shop.prepare(at=moment).plan.checkpoint == f"chk-{LAST - 3}"
    run = shop.open(start)
    assert run.origin is not None
    assert run.origin.checkpoint == f"chk-{LAST}"


def test_the_latest_is_the_one_that_was_shown_although_a_newer_one_was_kept(shop: Shop) -> None:
    start = shop.prepare(source="latest")
    shop.keep(LAST - 3, datetime.now(UTC))
    run = shop.open(start)
    assert run.origin is not None
    assert run.origin.checkpoint == start.plan.checkpoint == "before"


def test_a_flow_that_changed_since_is_refused(shop: Shop) -> None:
    start = shop.prepare(source="chk-18")
    shop.flow.write_text(shop.flow.read_text().replace('.to("out")', '.to("elsewhere")'))
    assert refusal(shop, start) == "RESTORE_CHANGED"


def test_a_checkpoint_that_was_replaced_since_is_refused(shop: Shop) -> None:
    start = shop.prepare(source="chk-18")
    file = shop.kept("chk-18") / "checkpoint.json"
    content = json.loads(file.read_text())
    file.unlink()
    file.write_text(json.dumps({**content, "parallelism": 3}))
    assert refusal(shop, start) == "RESTORE_CHANGED"


@pytest.mark.parametrize("part", ["checkpoint.json", "offsets/18", "commits/18"])
def test_a_checkpoint_that_was_corrupted_since_is_refused(shop: Shop, part: str) -> None:
    start = shop.prepare(source="chk-18")
    file = start.plan.folder / part
    content = file.read_bytes()
    file.unlink()
    file.write_bytes(content[: len(content) // 2])
    assert refusal(shop, start) == "CHECKPOINT_DAMAGED"


def test_a_checkpoint_that_was_removed_since_is_refused(shop: Shop) -> None:
    start = shop.prepare(source="chk-18")
    assert remove(start.plan.folder)
    assert refusal(shop, start) == "CHECKPOINT_NOT_FOUND"
    with (
        pytest.raises(HeadgateError, match="removed meanwhile"),
        hold_checkpoint(shop.home, start.plan.folder),
    ):
        pytest.fail("there is nothing to hold")


def test_a_restore_that_waits_for_another_one_is_refused_and_may_be_repeated(shop: Shop) -> None:
    first, second = (shop.prepare(source="chk-18") for _ in range(2))
    with shop.home.locked():
        done = CliRunner().invoke(app, ["restore", "shop", "--from", "chk-18"])
        assert "JOB_RUNNING" in done.output
    assert shop.open(first).lineage != shop.open(second).lineage
    assert origins(shop.home) == ["chk-18", "chk-18"]


# Retention leaves the checkpoint of a plan alone.


def test_retention_removes_a_checkpoint_only_when_every_restore_has_let_go(shop: Shop) -> None:
    folder = shop.kept("chk-18")
    first, second = (hold_checkpoint(shop.home, folder) for _ in range(2))
    first.__enter__()
    second.__enter__()
    assert not remove(folder)
    first.__exit__(None, None, None)
    assert not remove(folder)
    assert shop.open(shop.prepare(source="chk-18")).origin is not None
    second.__exit__(None, None, None)
    assert remove(folder)


def test_checkpoints_in_a_folder_of_the_user_are_held_too(shop: Shop, tmp_path: Path) -> None:
    shop.move_run(tmp_path / "elsewhere")
    folder = shop.kept("chk-18")
    assert folder.is_relative_to(tmp_path / "elsewhere")
    with hold_checkpoint(shop.home, folder):
        assert not remove(folder)
    assert remove(folder)


@pytest.mark.parametrize("moved", [False, True], ids=["in the job's folder", "elsewhere"])
def test_the_folder_of_each_listed_checkpoint_can_be_restored_from_anywhere(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    if moved:
        shop.move_run(tmp_path / "elsewhere")
    home = os.path.relpath(shop.home.root)
    listed = CliRunner().invoke(app, ["checkpoints", "shop", "--home", home, "--json"])
    folders = [one["folder"] for one in json.loads(listed.stdout)]
    assert len(folders) == 4
    inside = [Path(folder).is_relative_to(tmp_path / "elsewhere") for folder in folders]
    assert sum(inside) == (3 if moved else 0), "all but the savepoint"
    (tmp_path / "another").mkdir()
    monkeypatch.chdir(tmp_path / "another")
    for folder in folders:
        command = ["restore", "shop", "--from", folder, "--dry-run", "--json"]
        done = CliRunner().invoke(app, [*command, "--home", str(shop.home.root.absolute())])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["folder"] == folder


def test_a_pin_that_comes_while_a_checkpoint_is_held_stays(shop: Shop) -> None:
    folder = shop.kept("chk-18")
    with hold(folder, job="shop"):
        assert CliRunner().invoke(app, ["checkpoints", "shop", "pin", "chk-18"]).exit_code == 0
    assert [each.id for each in list_kept(folder.parent) if each.pinned] == ["chk-18"]
    assert not remove(folder)


def test_a_savepoint_is_not_written_into(shop: Shop) -> None:
    folder = shop.home.savepoints_folder / "before"
    before = sorted(folder.rglob("*"))
    with hold_checkpoint(shop.home, folder):
        assert sorted(folder.rglob("*")) == before


HOLDER = """
import sys, time
from pathlib import Path
from headgate.jobs.control.restore_start import hold_checkpoint
from headgate.jobs.job_folder import JobFolder
with hold_checkpoint(JobFolder(Path(sys.argv[1]), "shop"), Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_restore_that_is_killed_between_plan_and_start_leaves_nothing_behind(
    shop: Shop,
) -> None:
    folder = shop.kept("chk-18")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(shop.home.root), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert not remove(folder)
        holder.send_signal(signal.SIGKILL)
    assert not list_kept(folder.parent)[0].pinned
    assert origins(shop.home) == []
    assert remove(folder)


# The past that a restore chooses from.


def test_runs_that_name_each_other_as_their_origin_do_not_make_an_endless_walk(
    shop: Shop,
) -> None:
    first = find_run(shop.home, str(shop.home.find_present_run()))
    assert first is not None
    restored = shop.open(shop.prepare(source="chk-18"))
    assert restored.origin is not None
    write_run(shop.home, replace(first, origin=replace(restored.origin, lineage=restored.lineage)))
    assert shop.prepare(source="chk-18").plan.checkpoint == "chk-18"
