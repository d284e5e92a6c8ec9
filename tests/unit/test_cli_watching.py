"""The verbs that look at a job from outside, as a user types them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_runs import run

from headgate import Flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import new_run, write_run
from headgate.jobs.supervision.trace_file import add_trace

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    monkeypatch.chdir(tmp_path)
    made = JobFolder(Path(".headgate"), "orders")
    made.write_status({"state": "STOPPED", "inputs": {"in": 5}, "ports": {"in": 4, "in!": 1}})
    return made


def note(home: JobFolder, second: int, kind: str, **told: Any) -> None:
    home.add_event(NOON + timedelta(seconds=second), kind, **told)


def test_graph_shows_nodes_and_edges_with_their_rows(home: JobFolder) -> None:
    assert "never run" in run("graph", "orders").stdout
    flow = Flow("orders")
    flow.stream("in", "n BIGINT").to("out")
    made = new_run(home, flow.graph(), parallelism=2, checkpoints=None, now=NOON)
    write_run(home, made)
    home.write_job(made.lineage, flow="flow.py", options={})
    lines = [line.split() for line in run("graph", "orders").stdout.splitlines()]
    assert ["in", "source", "5", "4", "-", "-", "-", "-", "-"] in lines
    assert ["in", "out", "-", "forward", "4", "-"] in lines
    told = json.loads(run("graph", "orders", "--json").stdout)
    assert [each["id"] for each in told["nodes"]] == ["in", "out", "dead-letters"]


def test_events_lists_what_happened_after_a_number(home: JobFolder) -> None:
    assert "Job 'orders' has no events yet" in run("events", "orders").stdout
    note(home, 0, "STARTING", attempt=1)
    note(home, 1, "INTENT", number=7, verb="stop", by="x\x1b[31m")
    result = run("events", "orders", "--after", "1")
    assert "STARTING" not in result.stdout
    assert "2026-11-15 12:00:01" in result.stdout
    assert "number 7, verb stop, by x\\x1b[31m" in result.stdout
    told = json.loads(run("events", "orders", "--limit", "1", "--json").stdout)
    assert (told["events"][0]["number"], told["total"], told["skipped"]) == (2, 2, 1)


def test_events_pages_forward_with_the_command_of_the_next_page(home: JobFolder) -> None:
    for number in range(1, 6):
        note(home, number, "CHECKPOINT", checkpoint=f"chk-{number}")
    first = run("events", "orders", "--after", "0", "--limit", "2")
    assert [line.split()[0] for line in first.stdout.splitlines()[1:]] == ["1", "2"]
    assert "3 more events: headgate events orders --after 2" in first.stderr
    last = run("events", "orders", "--after", "3", "--limit", "2")
    assert [line.split()[0] for line in last.stdout.splitlines()[1:]] == ["4", "5"]
    assert "more event" not in last.stderr + run("events", "orders", "--limit", "2").stderr


def test_exceptions_shows_the_root_cause_first_and_the_attempts(home: JobFolder) -> None:
    assert "No attempt of job 'orders' has failed" in run("exceptions", "orders").stdout
    note(home, 0, "STARTING", attempt=1)
    told = {"code": "QUERY_FAILED", "message": "it failed", "root_cause": "Boom: x"}
    note(home, 9, "FAILURE", attempt=1, where="query", hint="headgate logs orders", **told)
    note(home, 9, "FAILED", attempt=1, reason="attempt 1 failed")
    lines = run("exceptions", "orders").stdout.splitlines()
    assert lines[0] == "Boom: x"
    assert lines[2].strip() == "QUERY_FAILED: it failed"
    assert lines[-1].split()[3:6] == ["FAILED", "0:00:09", "attempt"]
    found = json.loads(run("exceptions", "orders", "--json").stdout)
    assert found["failures"][0]["root_cause"] == "Boom: x"
    add_trace(home, NOON + timedelta(seconds=9), "Boom: x\n\tat Y\x1b[2J\n")
    assert "at Y" not in run("exceptions", "orders").stdout
    lines = run("exceptions", "orders", "--verbose").stdout.splitlines()
    assert [line.strip() for line in lines[4:6]] == ["Boom: x", "at Y\\x1b[2J"]
    found = json.loads(run("exceptions", "orders", "--json").stdout)
    assert found["failures"][0]["trace"].startswith("Boom: x\n")


@pytest.mark.parametrize("verb", ["graph", "events", "exceptions"])
def test_a_job_that_is_not_there_is_refused(verb: str) -> None:
    result = run(verb, "none")
    assert result.exit_code == 2
    assert "JOB_NOT_FOUND" in result.stderr
