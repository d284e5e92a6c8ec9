"""`Flow.run` and `Flow.preview` in real processes that are interrupted and killed.

Java is a script here that comes up for ever, so that all this happens before there is any Spark.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

import headgate
from headgate import Flow, HeadgateError, connect
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.views.job import view_job

MARK = "HEADGATE_TEST_MARK"
SCRIPT = """
from headgate import Flow
flow = Flow("copies")
flow.stream("orders", "id BIGINT").to("out")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a working directory in which nothing is left at the end."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "java").write_text("#!/bin/sh\nexec sleep 300\n")
    (tmp_path / "java").chmod(0o755)
    yield tmp_path
    for pid in processes(tmp_path):
        os.kill(pid, signal.SIGKILL)


def start(text: str, folder: Path) -> subprocess.Popen[str]:
    """Run text as a prompt does: the flow in it has no file."""
    environment = {
        **os.environ,
        "PATH": f"{folder}:/usr/bin:/bin",
        "PYTHONPATH": str(Path(headgate.__file__).parents[1]),
        MARK: str(folder),
    }
    environment.pop("JAVA_HOME", None)
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT + text],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def processes(folder: Path) -> list[int]:
    """Return all processes that descend from those of a test, the JVM among them."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            environment = (each / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{MARK}={folder}".encode() in environment:
            found.append(int(each.name))
    return found


def home() -> JobFolder:
    return JobFolder(Path(".headgate"), "copies")


def has_java(folder: Path) -> bool:
    """Tell whether the driver's JVM comes up."""
    commands = []
    for pid in processes(folder):
        try:
            commands.append((Path("/proc") / str(pid) / "cmdline").read_bytes())
        except OSError:
            continue
    return any(command.startswith(b"sleep") for command in commands)


def test_a_killed_process_takes_the_processes_of_its_attached_run_along(folder: Path) -> None:
    run = start("flow.run(until_caught_up=True)", folder)
    eventually(lambda: has_java(folder))
    assert len(processes(folder)) >= 3
    run.kill()
    run.communicate()
    eventually(lambda: not processes(folder), what=lambda: processes(folder))
    assert view_job(home()).state == "DEAD"
    # What the prompt declared is known, so the job can be started again.
    assert connect().job("copies").graph().nodes
    with pytest.raises(HeadgateError, match="its supervisor is gone"):
        connect().job("copies").wait()


def test_a_job_in_the_background_outlives_the_process_that_started_it(folder: Path) -> None:
    run = start("print(flow.run(detach=True), flush=True); import time; time.sleep(300)", folder)
    assert run.stdout is not None
    assert "<Job 'copies' in " in run.stdout.readline()
    run.kill()
    run.communicate()
    eventually(lambda: has_java(folder))
    assert has_supervisor(home())
    job = connect().job("copies")
    assert job.status.is_alive
    with pytest.raises(HeadgateError) as waited:
        job.wait(timeout="100ms")
    assert waited.value.code == "WAITED_TOO_LONG"
    job.cancel()
    assert job.wait().state == "CANCELED"
    eventually(lambda: not processes(folder), what=lambda: processes(folder))


def test_interrupts_end_an_attached_run_and_give_its_job_back(folder: Path) -> None:
    run = start("job = flow.run(); print('ended:', job.status.state)", folder)
    eventually(lambda: has_java(folder))
    run.send_signal(signal.SIGINT)
    eventually(lambda: view_job(home()).state == "STOPPING")
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert "ended: CANCELED" in said
    assert run.returncode == 0, said
    assert not processes(folder)


def test_a_bounded_run_that_is_interrupted_raises(folder: Path) -> None:
    run = start("flow.run(until_caught_up=True)", folder)
    eventually(lambda: has_java(folder))
    run.send_signal(signal.SIGINT)
    eventually(lambda: view_job(home()).state == "STOPPING")
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=60)
    assert "JOB_ENDED job 'copies' has not caught up: it is CANCELED" in said
    assert not processes(folder)


def test_a_preview_ends_with_its_parent_and_with_an_interrupt(folder: Path) -> None:
    text = """
try:
    flow.preview({"orders": []})
except KeyboardInterrupt:
    print("interrupted", flush=True)
flow.preview({"orders": []})
"""
    run = start(text, folder)
    eventually(lambda: has_java(folder))
    first = set(processes(folder))
    run.send_signal(signal.SIGINT)
    assert run.stdout is not None
    assert run.stdout.readline() == "interrupted\n"
    # Another process takes the next preview.
    eventually(lambda: has_java(folder) and not first & set(processes(folder)) - {run.pid})
    run.kill()
    run.communicate()
    eventually(lambda: not processes(folder), what=lambda: processes(folder))


def copies() -> Flow:
    flow = Flow("copies")
    flow.stream("orders", "id BIGINT").to("out")
    return flow


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"fresh": True, "restore_from": "latest"}, "BAD_SETTING", "fresh and restore_from"),
        ({"paralelism": 4}, "UNKNOWN_SETTING", "'paralelism'"),
        (
            {"open_batch": "skip", "restore_from": "chk-1"},
            "BAD_SETTING",
            "restore_from and open_batch",
        ),
        ({"open_batch": "again"}, "BAD_SETTING", "open_batch must be"),
        ({"checkpoint_every": "soon"}, "BAD_DURATION", "'soon'"),
        ({"on": "carrier-pigeon://x"}, "LOG_UNSUPPORTED", "carrier-pigeon"),
    ],
)
def test_a_run_that_cannot_be_is_refused(
    options: dict[str, object], code: str, message: str, folder: Path
) -> None:
    with pytest.raises(HeadgateError, match=message) as refused:
        copies().run(**options)  # type: ignore[arg-type]
    assert refused.value.code == code
    assert not (folder / ".headgate" / "jobs").exists()


def test_a_job_that_does_not_exist_is_named(folder: Path) -> None:
    with pytest.raises(HeadgateError) as missing:
        connect(folder / "nowhere").job("copies")
    assert missing.value.code == "JOB_NOT_FOUND"
    assert list(connect()) == []


def test_importing_headgate_imports_neither_spark_nor_the_rest() -> None:
    heavy = ("pyspark", "pydantic", "rich", "numpy", "httpx", "headgate.jobs")
    code = f"import sys, headgate; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
