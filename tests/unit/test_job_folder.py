"""A job's folder has one writer at a time, and its files are read whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import headgate
from headgate import HeadgateError
from headgate.errors import Domain
from headgate.jobs.job_folder import FORMAT, JobFolder, read_json, write_json

_HOLD = """
import sys, time
from pathlib import Path
from headgate.jobs.job_folder import JobFolder
with JobFolder(Path(sys.argv[1]), "orders").locked():
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path, "orders")


def _hold(home: JobFolder) -> subprocess.Popen[str]:
    source = Path(headgate.__file__).parents[1]
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(home.root)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_job_that_another_process_runs_is_refused_by_its_number(home: JobFolder) -> None:
    with _hold(home) as holder:
        try:
            with (
                pytest.raises(HeadgateError, match=f"process {holder.pid}") as caught,
                home.locked(),
            ):
                pass
        finally:
            holder.kill()
    assert (caught.value.code, caught.value.exit_code) == ("JOB_RUNNING", 2)


def test_a_killed_holder_lets_go_of_the_job(home: JobFolder) -> None:
    with _hold(home) as holder:
        holder.send_signal(signal.SIGKILL)
    with home.locked():
        assert (home.path / "lock").read_text() == f"process {os.getpid()}"


def test_a_job_can_be_held_again_after_it_was_let_go(home: JobFolder) -> None:
    for _ in range(2):
        with home.locked():
            pass
    with home.locked(), pytest.raises(HeadgateError, match="JOB_RUNNING"), home.locked():
        pass
    with home.locked():
        pass


def test_two_jobs_do_not_stand_in_each_others_way(tmp_path: Path) -> None:
    with JobFolder(tmp_path, "one").locked(), JobFolder(tmp_path, "two").locked():
        pass


def test_a_job_that_never_ran_has_no_run(home: JobFolder) -> None:
    assert home.find_present_run() is None
    home.write_job("20261115T120000-abcdef", flow="flow.py", options={})
    assert home.find_present_run() == "20261115T120000-abcdef"
    home.write_job("20261115T120001-abcdef", flow="flow.py", options={})
    assert home.find_present_run() == "20261115T120001-abcdef"


def test_files_carry_their_format_and_leave_no_draft_behind(home: JobFolder) -> None:
    home.write_status({"state": "RUNNING", "name": "Zürich"})
    assert home.find_json("status.json") == {
        "format": FORMAT,
        "state": "RUNNING",
        "name": "Zürich",
    }
    assert [file.name for file in home.path.iterdir()] == ["status.json"]


def test_events_are_lines_in_the_order_they_came(home: JobFolder) -> None:
    home.path.mkdir(parents=True)
    at = datetime(2026, 11, 15, tzinfo=UTC)
    home.add_event(at, "STARTING", lineage="x")
    home.add_event(at, "FAILED", message="two\nlines")
    lines = (home.path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["STARTING", "FAILED"]
    assert json.loads(lines[0]) == {
        "format": FORMAT,
        "at": "2026-11-15T00:00:00+00:00",
        "event": "STARTING",
        "lineage": "x",
    }


def test_what_lies_where(home: JobFolder) -> None:
    assert home.path == home.root / "jobs" / "orders"
    assert home.log_file == home.path / "logs" / "spark.log"
    assert home.run_folder("x") == home.path / "runs" / "x"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b'"format"'])
def test_a_damaged_file_is_told_with_its_path(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "job.json"
    file.write_bytes(content)
    with pytest.raises(HeadgateError, match=str(file)) as caught:
        read_json(file)
    assert (caught.value.code, caught.value.domain) == ("JOB_FILE_BROKEN", Domain.EXTERNAL)


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text('{"format": 99}')
    with pytest.raises(HeadgateError, match="its format is 99") as caught:
        read_json(file)
    assert caught.value.code == "JOB_FORMAT_UNSUPPORTED"
    with pytest.raises(HeadgateError, match="its format is 99, and this release reads 1 to 2"):
        read_json(file, newest=2)


@pytest.mark.parametrize("found", [1, 2])
def test_a_file_that_has_had_several_formats_reads_in_each(tmp_path: Path, found: int) -> None:
    write_json(tmp_path / "run.json", {"format": found, "x": 1})
    assert read_json(tmp_path / "run.json", newest=2) == {"format": found, "x": 1}


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_json(tmp_path / "job.json") is None


def test_a_write_makes_the_folders_it_needs(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b.json", {"x": 1})
    assert read_json(tmp_path / "a" / "b.json") == {"format": FORMAT, "x": 1}


def test_an_event_behind_half_a_line_is_not_lost(tmp_path: Path) -> None:
    home = JobFolder(tmp_path, "orders")
    home.write_json("job.json", {})
    now = datetime(2026, 11, 16, tzinfo=UTC)
    home.add_event(now, "RUNNING")
    with (home.path / "events.jsonl").open("a") as file:
        file.write('{"format": 1, "ev')
    home.add_event(now, "STOPPED")
    lines = (home.path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in (lines[0], lines[2])] == ["RUNNING", "STOPPED"]
