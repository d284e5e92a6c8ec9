"""Handles on jobs of a folder: what they return, raise and show."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from past_jobs import RUN, keep, make_job

from headgate import HeadgateError, connect
from headgate.interactive.progress import Share
from headgate.interactive.tables import Rows
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.totals import Totals
from headgate.jobs.values import JobSnapshot


def test_checkpoints_and_savepoints_are_lists_that_show_themselves(tmp_path: Path) -> None:
    home = make_job(tmp_path, "shop")
    keep(home, 3)
    keep(home, 5)
    keep(home, 4, into=home.savepoints_folder / "before-release")
    job = connect(tmp_path).job("shop")
    assert [each.id for each in job.checkpoints()] == ["chk-3", "before-release", "chk-5"]
    assert [each.id for each in job.savepoints()] == ["before-release"]
    header, *lines = repr(job.checkpoints()).splitlines()
    assert header.split() == [
        "id",
        "kind",
        "run",
        "completed",
        "(UTC)",
        "records",
        "size",
        "status",
    ]
    assert lines[0].split()[:3] == ["chk-3", "checkpoint", RUN]
    assert "<td" in job.checkpoints()._repr_html_()


def test_a_job_that_failed_raises_its_error_when_it_is_waited_for(tmp_path: Path) -> None:
    home = make_job(tmp_path, "shop")
    failure = {
        "code": "FUNCTION_FAILED",
        "message": "it raised",
        "hint": "fix it",
        "domain": "user",
    }
    home.write_status({"state": "FAILED", "lineage": RUN, "last_failure": failure})
    job = connect(tmp_path).job("shop")
    with pytest.raises(HeadgateError) as failed:
        job.wait()
    assert (failed.value.code, failed.value.exit_code) == ("FUNCTION_FAILED", 2)
    assert repr(job) == f"<Job 'shop' in {tmp_path}: FAILED>"


def test_a_job_at_rest_refuses_what_needs_a_process(tmp_path: Path) -> None:
    make_job(tmp_path, "shop")
    jobs = connect(tmp_path)
    job = jobs.job("shop")
    assert job.wait().state == "STOPPED"
    for call in (job.stop, job.cancel, job.pause, job.resume):
        with pytest.raises(HeadgateError) as refused:
            call()
        assert refused.value.code == "JOB_NOT_RUNNING"
    with pytest.raises(HeadgateError, match="the logs of a job are spark, driver"):
        job.logs("nothing")
    assert [each.name for each in jobs] == ["shop"]
    assert len(jobs) == 1
    assert "shop  STOPPED" in repr(jobs)
    assert ">STOPPED</td>" in jobs._repr_html_()


def test_cells_are_cut_at_a_prompt_and_whole_in_a_notebook() -> None:
    rows = Rows(["x" * 100, "a\nb"], ("text",), lambda text: [text])
    assert repr(rows).splitlines() == ["text", "x" * 59 + "…", "a b"]
    assert "x" * 100 in rows._repr_html_()


def test_the_share_that_has_been_read_is_that_of_the_slowest_source() -> None:
    share = Share()
    assert share.of(snapshot(Totals())) is None
    records = Totals(batch=0, inputs={"orders": 300}, lag_records={"orders": 100})
    assert share.of(snapshot(records)) == 0.75
    begun = Totals(batch=0, lag_bytes={"users": 200}, inputs={"users": 5})
    assert share.of(snapshot(begun)) == 0.0
    both = Totals(
        batch=1, inputs={"orders": 300}, lag_records={"orders": 100}, lag_bytes={"users": 150}
    )
    assert share.of(snapshot(both)) == 0.25
    done = Totals(
        batch=2, inputs={"orders": 400}, lag_records={"orders": 0}, lag_bytes={"users": 0}
    )
    assert share.of(snapshot(done)) == 1.0


def snapshot(totals: Totals) -> JobSnapshot:
    return JobSnapshot(
        job="shop",
        state=JobState.RUNNING,
        lineage=RUN,
        resumed_from=None,
        loading=False,
        elapsed=timedelta(seconds=1),
        totals=totals,
        folder=Path("shop"),
    )
