"""A process in the background is known by its number and its birth, and is ended gently first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from eventually import eventually

from headgate import HeadgateError
from headgate._clock import SystemClock
from headgate.brokers.process import (
    Process,
    find_process,
    read_birth,
    start_process,
    stop_process,
)

CLOCK = SystemClock()
GRACE = timedelta(seconds=10)
SLEEPS = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS


def start(folder: Path, script: str = SLEEPS) -> Process:
    """Start a script, and return once it says that it is up."""
    output = folder / "out"
    process = start_process(
        [sys.executable, "-c", script],
        folder / "process.json",
        output=output,
        facts={"port": 7},
        clock=CLOCK,
    )
    eventually(lambda: b"up" in output.read_bytes(), every=0.02)
    return process


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Process]:
    process = start(tmp_path)
    yield process
    stop_process(process, grace=GRACE, clock=CLOCK)


def test_a_process_is_found_again_by_its_file(running: Process, tmp_path: Path) -> None:
    found = find_process(tmp_path / "process.json")
    assert found == running
    assert found.is_alive
    assert found.facts == {"port": 7}
    assert os.getsid(found.pid) == found.pid


def test_another_process_of_the_same_number_is_not_taken_for_it(running: Process) -> None:
    older = replace(running, birth="some other boot/1")
    assert not older.is_alive
    assert stop_process(older, grace=GRACE, clock=CLOCK)
    assert running.is_alive


def test_a_process_that_is_asked_to_end_is_not_killed(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert stop_process(process, grace=GRACE, clock=CLOCK)
    assert not process.is_alive
    found = find_process(tmp_path / "process.json")
    assert found is not None
    assert not found.is_alive


def test_a_process_that_does_not_listen_is_killed_after_a_grace(tmp_path: Path) -> None:
    process = start(tmp_path, STUBBORN)
    assert not stop_process(process, grace=timedelta(seconds=0.3), clock=CLOCK)
    assert not process.is_alive


def test_a_child_that_has_ended_is_over_before_anybody_asks_how() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    eventually(lambda: read_birth(child.pid) is None, every=0.02)
    assert child.wait() == 0


def test_a_name_with_blanks_and_parentheses_hides_no_birth(tmp_path: Path) -> None:
    fields = " ".join(str(number) for number in range(4, 30))
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text(f"12 (a) b) R {fields}\n")
    birth = read_birth(12, tmp_path)
    assert birth is not None
    assert birth.endswith("/22")
    assert read_birth(13, tmp_path) is None


def test_a_process_is_there_until_the_last_of_its_threads_has_ended(tmp_path: Path) -> None:
    (tmp_path / "12").mkdir()
    stat = tmp_path / "12" / "stat"
    for threads, is_over in ((40, False), (1, True)):
        fields = ["0"] * 16 + [str(threads), "0", "777"]
        stat.write_text(f"12 (java) Z {' '.join(fields)} 0 0\n")
        assert (read_birth(12, tmp_path) is None) is is_over


def test_a_file_of_another_format_or_damaged_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "process.json"
    assert find_process(file) is None
    for text in (json.dumps({"format": 2}), "{"):
        file.write_text(text)
        with pytest.raises(HeadgateError) as caught:
            find_process(file)
        assert caught.value.code == "BROKER_FILE_BROKEN"
        assert str(file) in caught.value.hint
