"""The size of state follows its rows, whatever RocksDB's memory and files do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_clock import NOON

from headgate.engine.attempt.progress import BatchReport, StateProgress
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.supervision.state_sizes import StateSizes

FILES = 4096


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path, "orders")


def report(rows: int, *, writes: int = 0, each: int = 0, timers: int = 0) -> BatchReport:
    state = StateProgress(
        rows, FILES, entries=rows + timers, writes=writes, written_bytes=writes * each
    )
    nothing = NOON - NOON
    return BatchReport(1, NOON, nothing, {}, {}, {"with-user": state}, {})


def size(sizes: StateSizes, batch: BatchReport) -> int:
    return sizes.sized(batch).state["with-user"].bytes


def test_the_size_is_the_number_of_rows_times_their_mean_size(home: JobFolder) -> None:
    sizes = StateSizes(home)
    assert size(sizes, report(100, writes=100, each=50)) == 5_000
    assert size(sizes, report(100, writes=100, each=100)) == 7_500
    assert size(sizes, report(20)) == 1_500


def test_rewritten_rows_leave_the_size_as_it_is(home: JobFolder) -> None:
    sizes = StateSizes(home)
    assert {size(sizes, report(100, writes=100, each=50)) for _ in range(20)} == {5_000}


def test_timers_are_part_of_the_size(home: JobFolder) -> None:
    assert size(StateSizes(home), report(10, writes=20, each=5, timers=10)) == 100


def test_a_start_that_has_written_nothing_uses_the_mean_of_the_last_one(home: JobFolder) -> None:
    home.write_status({"state_rows": {"with-user": 10}, "state_bytes": {"with-user": 700}})
    sizes = StateSizes(home)
    assert size(sizes, report(20)) == 1_400
    assert size(sizes, report(20, writes=1, each=50)) == 1_000


def test_without_any_mean_the_size_is_that_of_the_files(home: JobFolder) -> None:
    home.write_status({"state_rows": {"with-user": 0, "other": 3}, "state_bytes": {"with-user": 0}})
    batch = report(20)
    assert StateSizes(home).sized(batch) == batch
    assert StateSizes(home).sized(replace(batch, state={})).state == {}


def test_a_broken_status_does_not_keep_a_job_from_starting(home: JobFolder) -> None:
    home.write_status({})
    (home.path / "status.json").write_text("{")
    assert size(StateSizes(home), report(20)) == FILES
