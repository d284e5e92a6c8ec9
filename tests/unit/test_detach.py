"""Jobs in the background: how a start goes is known, and the supervisor stands on its own.

Java is a script here that fails at once, so that an attempt ends before there is any Spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from typer.testing import CliRunner

import headgate
from headgate._codec import encode
from headgate.cli.app import app
from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.startup.background import start_detached, supervisor_output
from headgate.jobs.values import RunOptions
from headgate.jobs.views.job import view_job

COMMAND = [sys.executable, "-m", "headgate"]
FLOW = """
from headgate import Flow
flow = Flow("copies")
flow.stream("orders", "id BIGINT").to("out")
"""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a flow's file in the working directory, and end whatever was started of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(headgate.__file__).parents[1]))
    programs = tmp_path / "bin"
    programs.mkdir()
    java = programs / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "flow.py").write_text(FLOW)
    yield "flow.py"
    status = home().find_json("status.json") or {}
    if has_supervisor(home()):
        os.kill(int(status["pid"]), signal.SIGKILL)


def home() -> JobFolder:
    return JobFolder(Path(".headgate"), "copies")


def wait_until_it_is(state: str) -> None:
    eventually(
        lambda: not has_supervisor(home()) and view_job(home()).state == state,
        what=lambda: view_job(home()),
    )


def wait_until_it_says(text: str) -> None:
    output = supervisor_output(home())
    eventually(lambda: text in output.read_text(), what=output.read_text)


def test_a_start_returns_while_the_job_starts_and_the_supervisor_stands_on_its_own(
    flow: str,
) -> None:
    # A JVM that comes up for ever, so that what is looked at stays.
    Path("bin/java").write_text("#!/bin/sh\nexec sleep 60\n")
    started = start_detached(flow, RunOptions())
    assert started.job == "copies"
    assert encode(started)["state"] == "STARTING"
    assert os.getsid(started.pid) != os.getsid(0)
    assert (home().find_json("status.json") or {})["pid"] == started.pid
    with pytest.raises(HeadgateError) as caught:
        start_detached(flow, RunOptions())
    assert caught.value.code == "JOB_RUNNING"
    assert view_job(home()).state == "STARTING"
    assert FolderHome(Path(".headgate")).cancel("copies").state == "CANCELED"
    assert not has_supervisor(home())
    wait_until_it_says("is CANCELED")


def test_a_job_that_fails_in_the_background_says_why_in_its_folder(flow: str) -> None:
    start_detached(flow, RunOptions(restart="none"))
    wait_until_it_is("FAILED")
    assert "DRIVER_NOT_STARTED" in view_job(home()).reason
    wait_until_it_says("DRIVER_NOT_STARTED")


def test_a_refusal_in_the_background_is_told_in_front(
    flow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HeadgateError) as caught:
        start_detached(flow, RunOptions())
    assert (caught.value.code, caught.value.exit_code) == ("JAVA_MISSING", 3)
    assert not has_supervisor(home())


def test_a_flow_that_cannot_be_read_is_refused_before_anything_is_spawned(flow: str) -> None:
    with pytest.raises(HeadgateError) as caught:
        start_detached("other.py", RunOptions())
    assert caught.value.code == "FLOW_NOT_FOUND"


@pytest.mark.parametrize("command", [("run", "--detach"), ("run",), ("plan", "--spark")])
def test_a_first_download_is_told_of_in_the_terminal_before_it_begins(
    flow: str, command: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    result = CliRunner().invoke(app, [*command, flow, "--on", "kafka://127.0.0.1:1"])
    assert result.exit_code == 3
    # No terminal is there; the Java that fetches ends at once.
    first, second, *_ = result.stderr.splitlines()
    jars = tmp_path / "cache" / "jars"
    assert first == f"downloading kafka-clients-4.3.1.jar, 9.7MiB, once, into {jars}"
    assert second.startswith("error ARTIFACT_UNAVAILABLE: ")
    assert not has_supervisor(home())


def test_run_detached_prints_the_jobs_name_alone(flow: str) -> None:
    done = subprocess.run(
        [*COMMAND, "run", flow, "--detach", "--restart", "none"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "copies\n"
    assert "headgate stop copies" in done.stderr
    wait_until_it_is("FAILED")
    told = subprocess.run(
        [*COMMAND, "run", flow, "-d", "--restart", "none", "--json"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(told)["job"] == "copies"
    wait_until_it_is("FAILED")
