"""Ctrl-C and SIGTERM on `headgate run`, as a process of its own.

Java is a script here that hangs or fails, so that an attempt ends before there is any Spark.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

import headgate
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor, write_intent
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.views.job import view_job

COMMAND = [sys.executable, "-m", "headgate"]
FLOW = """
from headgate import Flow
flow = Flow("copies")
flow.stream("orders", "id BIGINT").to("out")
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """Give a job that runs in front, whose JVM comes up for ever."""
    monkeypatch.chdir(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    java = programs / "java"
    java.write_text("#!/bin/sh\nwhile [ ! -e fail ]; do sleep 0.05; done; exit 1\n")
    java.chmod(0o755)
    (tmp_path / "flow.py").write_text(FLOW)
    environment = {
        **os.environ,
        "PATH": f"{programs}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(headgate.__file__).parents[1]),
    }
    environment.pop("JAVA_HOME", None)
    process = subprocess.Popen(
        [*COMMAND, "run", "flow.py"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    eventually(lambda: has_supervisor(home()) and (status().get("child") is not None))
    yield process
    process.kill()
    process.wait()


def home() -> JobFolder:
    return JobFolder(Path(".headgate"), "copies")


def status() -> dict[str, object]:
    return dict(home().find_json("status.json") or {})


def events() -> list[str]:
    lines = (home().path / "events.jsonl").read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.15])
def test_five_quick_interrupts_end_with_the_code_of_an_interrupt(
    run: subprocess.Popen[str], pause: float
) -> None:
    for _ in range(5):
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
        time.sleep(pause)
    # Signals that arrive together count as one, which only stops the job.
    eventually(lambda: status()["state"] != "STARTING")
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert "Traceback" not in said
    assert view_job(home()).state == "CANCELED"


def test_a_cancel_request_together_with_a_signal_cancels(run: subprocess.Popen[str]) -> None:
    # Stopped meanwhile, so that it finds both at once.
    run.send_signal(signal.SIGSTOP)
    write_intent(home(), Verb.CANCEL, by="a test")
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGCONT)
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert "ILLEGAL_TRANSITION" not in said
    assert view_job(home()).state == "CANCELED"


def test_an_interrupt_of_a_job_that_is_failing_leaves_it_stopped(
    run: subprocess.Popen[str],
) -> None:
    run.send_signal(signal.SIGINT)
    eventually(lambda: status()["state"] == "STOPPING")
    Path("fail").touch()
    said, _ = run.communicate(timeout=60)
    assert run.returncode == 0, said
    assert view_job(home()).state == "STOPPED"
    assert "FAILURE" in events()
    assert "DRIVER_NOT_STARTED" in view_job(home()).reason


def test_a_driver_that_is_killed_is_noticed_and_told(run: subprocess.Popen[str]) -> None:
    os.kill(int(str(status()["child"])), signal.SIGKILL)
    eventually(lambda: "FAILURE" in events())
    line = next(
        json.loads(each)
        for each in (home().path / "events.jsonl").read_text().splitlines()
        if json.loads(each)["event"] == "FAILURE"
    )
    assert (line["code"], line["root_cause"]) == ("DRIVER_DIED", "killed by signal 9")


def test_a_driver_ends_with_its_supervisor(run: subprocess.Popen[str]) -> None:
    child = int(str(status()["child"]))
    run.kill()
    run.wait()
    eventually(lambda: not Path(f"/proc/{child}").exists())
    assert view_job(home()).state == "DEAD"
