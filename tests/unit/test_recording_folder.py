"""A recording of classes leaves no process and no folder behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from eventually import eventually

from headgate._kernel.archive import RECORD
from headgate.jobs.host.recording_folder import clear_leftovers, open_recording_folder

# Starts a process of the recording, as a job's supervisor does its worker, and waits.
PREPARING = f"""
import os, subprocess, sys
from headgate.jobs.host.recording_folder import open_recording_folder
with open_recording_folder() as folder:
    environment = {{**os.environ, {RECORD!r}: str(folder)}}
    worker = subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)
    other = subprocess.Popen(["sleep", "600"], env=environment)
    # A process that is being started holds the files of this one for a moment: no more is started.
    print(worker.pid, flush=True)
    other.wait()
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of archives; temporary folders lie beside it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HEADGATE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "classes"
    folder.mkdir(parents=True)
    return folder


def folders(cache: Path) -> list[Path]:
    return list(cache.parents[1].glob("headgate-prepare-*"))


def begin() -> tuple[subprocess.Popen[str], int]:
    """Start a recording; return its process, and that of its worker."""
    process = subprocess.Popen([sys.executable, "-c", PREPARING], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, None)]
)
def test_a_signal_ends_the_processes_and_removes_the_folder(
    cache: Path, number: int, code: int | None
) -> None:
    process, worker = begin()
    process.send_signal(number)
    ended = process.wait(180)
    assert ended == code or code is None
    assert not is_running(worker)
    assert folders(cache) == []


def test_the_next_start_clears_what_a_killed_one_left(cache: Path) -> None:
    process, worker = begin()
    process.kill()
    process.wait(180)
    parts = [cache / f"a.jsa.{process.pid}.tmp", cache / f"a.{process.pid}.classes"]
    for part in parts:
        part.touch()
    (cache / f"b.jsa.{os.getpid()}.tmp").touch()
    assert is_running(worker)
    assert len(folders(cache)) == 1
    clear_leftovers()
    eventually(lambda: not is_running(worker), what="the end of its worker")
    assert folders(cache) == []
    # A part of a process that lives is its own.
    assert [file.name for file in cache.iterdir()] == [f"b.jsa.{os.getpid()}.tmp"]


def test_a_folder_in_use_is_left_alone(cache: Path) -> None:
    with open_recording_folder() as folder:
        clear_leftovers()
        assert folders(cache) == [folder]
        # Another one that is just being created.
        young = Path(tempfile.mkdtemp(prefix="headgate-prepare-"))
        clear_leftovers()
        assert young.exists()
        os.utime(young, (1, 1))
        clear_leftovers()
        assert not young.exists()
    assert folders(cache) == []
