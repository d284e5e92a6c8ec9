"""Events, failures, attempts and the history of checkpoints: read from the end, and at once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor
from past_jobs import NOON, RUN, keep, make_history, make_job

from headgate import HeadgateError
from headgate._codec import decode, encode
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.failures import format_trace
from headgate.jobs.supervision.trace_file import add_trace
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.job import list_jobs

# What the pages promise is 300 ms; these are read for them.
LONGEST = 0.3


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    return make_job(tmp_path, "orders")


def note(home: JobFolder, second: float, kind: str, **told: Any) -> None:
    home.add_event(NOON + timedelta(seconds=second), kind, **told)


def quickest(ask: Callable[[], Any]) -> float:
    """Return the processor's time of the best of three: others work on this machine too."""
    took = []
    for _ in range(3):
        began = time.process_time()
        ask()
        took.append(time.process_time() - began)
    return min(took)


def test_events_are_numbered_and_the_newest_are_given_oldest_first(home: JobFolder) -> None:
    for number in range(1, 501):
        note(home, number, "CHECKPOINT", checkpoint=f"chk-{number}")
    newest = FolderHome(home.root).events("orders", limit=3)
    assert [each.number for each in newest.events] == [498, 499, 500]
    assert (newest.total, newest.skipped) == (500, 497)
    assert newest.events[-1].facts == {"checkpoint": "chk-500"}
    assert encode(newest)["events"][-1]["event"] == "CHECKPOINT"
    later = FolderHome(home.root).events("orders", after=499)
    assert [each.number for each in later.events] == [500]
    before = FolderHome(home.root).events("orders", before=3)
    assert [each.number for each in before.events] == [1, 2]


def test_events_are_paged_forward_and_each_comes_once(home: JobFolder) -> None:
    for number in range(1, 24):
        note(home, number, "CHECKPOINT", checkpoint=f"chk-{number}")
    with (home.path / "events.jsonl").open("a") as file:
        file.write("{damaged\n" * 12)
    note(home, 36, "RUNNING")
    numbers: list[int] = []
    after, pages = 0, 0
    while True:
        page = FolderHome(home.root).events("orders", after=after, limit=10)
        assert page.skipped == 0
        numbers += [event.number for event in page.events]
        after, pages = page.last, pages + 1
        if after == page.total:
            break
    # A page of damaged lines alone does not end it.
    assert (numbers, pages) == ([*range(1, 24), 36], 4)
    end = FolderHome(home.root).events("orders", after=36, limit=10)
    assert (end.events, end.last, end.skipped) == ((), 36, 0)


def test_new_events_are_seen_and_half_a_line_is_not(home: JobFolder) -> None:
    note(home, 1, "STARTING", attempt=1)
    assert FolderHome(home.root).events("orders").total == 1
    with (home.path / "events.jsonl").open("a") as file:
        file.write('{"format": 1, "at": "2026-')
    assert [each.kind for each in FolderHome(home.root).events("orders").events] == ["STARTING"]
    with (home.path / "events.jsonl").open("a") as file:
        file.write('11-15T12:00:02+00:00", "event": "RUNNING", "attempt": 1}\n')
    found = FolderHome(home.root).events("orders", after=1)
    assert [(each.number, each.kind) for each in found.events] == [(2, "RUNNING")]


def test_a_damaged_line_keeps_its_number_and_is_left_out(home: JobFolder) -> None:
    note(home, 1, "STARTING", attempt=1)
    with (home.path / "events.jsonl").open("a") as file:
        file.write("{damaged\n")
    note(home, 2, "RUNNING", attempt=1)
    assert [each.number for each in FolderHome(home.root).events("orders").events] == [1, 3]


def test_a_job_without_events_has_none(home: JobFolder) -> None:
    assert FolderHome(home.root).events("orders").events == ()
    assert FolderHome(home.root).exceptions("orders").attempts == ()
    assert FolderHome(home.root).checkpoint_history("orders").entries == ()


def fail_twice(home: JobFolder) -> None:
    cause = {"root_cause": 'SparkException: a "bad" thing', "where": "query", "retryable": True}
    note(home, 0, "STARTING", attempt=1)
    note(home, 10, "RUNNING", attempt=1)
    for second in range(11, 20):
        note(home, second, "CHECKPOINT", checkpoint=f"chk-{second}")
    note(home, 20, "FAILURE", attempt=1, code="QUERY_FAILED", message="first", **cause)
    note(home, 20, "RESTARTING", attempt=1, reason="attempt 1 failed")
    note(home, 21, "STARTING", attempt=2)
    note(home, 31, "RUNNING", attempt=2)
    hint = "headgate logs orders"
    note(home, 40, "FAILURE", attempt=2, code="DRIVER_DIED", message="m", hint=hint, **cause)
    note(home, 40, "FAILED", attempt=2, reason="attempt 2 failed")


def test_failures_come_newest_first_with_their_root_cause_first(home: JobFolder) -> None:
    fail_twice(home)
    found = FolderHome(home.root).exceptions("orders")
    assert [each.code for each in found.failures] == ["DRIVER_DIED", "QUERY_FAILED"]
    newest, oldest = found.failures
    assert (newest.attempt, newest.at) == (2, NOON + timedelta(seconds=40))
    assert newest.root_cause == 'SparkException: a "bad" thing'
    assert next(iter(encode(newest))) == "root_cause"
    # Events of older releases have no hint.
    assert (newest.hint, oldest.hint) == ("headgate logs orders", "")


def test_attempts_tell_when_they_began_and_how_they_ended(home: JobFolder) -> None:
    fail_twice(home)
    note(home, 100, "STARTING", attempt=1)
    note(home, 110, "RUNNING", attempt=1)
    note(home, 120, "STOPPING", attempt=1)
    note(home, 121, "STOPPED", attempt=1)
    found = FolderHome(home.root).exceptions("orders").attempts
    assert [(each.number, each.state) for each in found] == [
        (1, "STOPPED"),
        (2, "FAILED"),
        (1, "RESTARTING"),
    ]
    assert found[0].lasted == timedelta(seconds=21)
    assert found[1].ended == NOON + timedelta(seconds=40)
    assert found[2].reason == "attempt 1 failed"


def test_what_is_told_as_json_comes_back_as_it_was(home: JobFolder) -> None:
    fail_twice(home)
    exceptions, events = (
        FolderHome(home.root).exceptions("orders"),
        FolderHome(home.root).events("orders"),
    )
    assert decode(Exceptions, json.loads(json.dumps(encode(exceptions)))) == exceptions
    assert decode(Events, json.loads(json.dumps(encode(events)))) == events


def test_an_attempt_whose_supervisor_was_killed_has_no_end(home: JobFolder) -> None:
    note(home, 0, "STARTING", attempt=1)
    note(home, 5, "RUNNING", attempt=1)
    note(home, 60, "STARTING", attempt=1)
    killed, again = FolderHome(home.root).exceptions("orders").attempts[::-1]
    assert (killed.state, killed.ended, killed.lasted) == ("DEAD", None, None)
    assert again.state == "DEAD"
    with FakeSupervisor(home):
        assert FolderHome(home.root).exceptions("orders").attempts[0].state == "STARTING"


def test_history_tells_of_what_was_removed_and_what_failed(home: JobFolder) -> None:
    for batch in (1, 2, 3):
        told = {"full_bytes": 10 * batch, "new_bytes": batch, "took_ms": 7}
        note(home, batch, "CHECKPOINT", checkpoint=f"chk-{batch}", run=RUN, **told)
    note(home, 4, "CHECKPOINT_FAILED", code="CHECKPOINT_NOT_WRITTEN", message="no room")
    note(home, 5, "SAVEPOINT", savepoint="sp-3", folder="gone", batch=3, bytes=33)
    note(home, 6, "RESTORED", lineage="next", restore={"checkpoint": "chk-2"})
    keep(home, 3)
    found = FolderHome(home.root).checkpoint_history("orders")
    assert [(each.id, each.status, each.kept) for each in found.entries] == [
        ("sp-3", "COMPLETED", False),
        ("", "FAILED", False),
        ("chk-3", "COMPLETED", True),
        ("chk-2", "COMPLETED", False),
        ("chk-1", "COMPLETED", False),
    ]
    assert (found.completed, found.failed, found.savepoints, found.restores) == (3, 1, 1, 1)
    assert found.entries[1].reason == "no room"
    assert (found.entries[2].took, found.entries[2].full_bytes) == (timedelta(milliseconds=7), 30)
    assert {name: each.id for name, each in found.latest.items()} == {
        "completed": "chk-3",
        "failed": "",
        "savepoint": "sp-3",
        "restore": "chk-2",
    }
    page = FolderHome(home.root).checkpoint_history("orders", limit=1, offset=2)
    assert [each.id for each in page.entries] == ["chk-3"]
    assert page.total == 5


def test_one_id_of_two_runs_is_kept_where_it_is(home: JobFolder) -> None:
    note(home, 1, "CHECKPOINT", checkpoint="chk-1", run="earlier")
    note(home, 2, "CHECKPOINT", checkpoint="chk-1", run=RUN)
    keep(home, 1, run="earlier")
    found = FolderHome(home.root).checkpoint_history("orders").entries
    assert [(each.run, each.kept) for each in found] == [(RUN, False), ("earlier", True)]


def test_events_of_an_older_release_have_no_run_and_the_newest_of_an_id_is_kept(
    home: JobFolder,
) -> None:
    note(home, 1, "CHECKPOINT", checkpoint="chk-1")
    note(home, 2, "CHECKPOINT", checkpoint="chk-1")
    keep(home, 1)
    assert [each.kept for each in FolderHome(home.root).checkpoint_history("orders").entries] == [
        True,
        False,
    ]


def test_a_list_has_what_is_damaged_first_and_then_the_oldest(home: JobFolder) -> None:
    for batch in (2, 10, 9):
        keep(home, batch)
    keep(home, 9, into=home.savepoints_folder / "before-upgrade")
    keep(home, 1, run="20260101T000000-aaaaaa")
    (home.checkpoints_folder(RUN) / "chk-2" / "checkpoint.json").write_text("{")
    listed = FolderHome(home.root).checkpoints("orders")
    assert [each.id for each in listed] == ["chk-2", "before-upgrade", "chk-9", "chk-10"]
    assert [each.status for each in listed] == ["DAMAGED", *["COMPLETED"] * 3]
    every = FolderHome(home.root).checkpoints("orders", every_run=True)
    assert [each.id for each in every[:2]] == ["chk-2", "chk-1"]


def test_ten_thousand_checkpoints_are_answered_in_a_moment(home: JobFolder) -> None:
    make_history(home, 10_000, kept=0)
    for batch in range(10_000):
        folder = home.checkpoints_folder(RUN) / f"chk-{batch}"
        folder.mkdir(parents=True)
    for batch in (1, 9_990, 9_999):
        (home.checkpoints_folder(RUN) / f"chk-{batch}").rmdir()
        keep(home, batch)
    root = home.root
    assert FolderHome(root).checkpoint_history("orders").completed == 10_000
    assert FolderHome(root).past("orders").left_off == 9_800
    assert quickest(lambda: FolderHome(root).checkpoint_history("orders")) < LONGEST
    assert quickest(lambda: FolderHome(root).past("orders")) < LONGEST
    assert quickest(lambda: FolderHome(root).events("orders")) < LONGEST
    assert quickest(lambda: FolderHome(root).exceptions("orders")) < LONGEST
    assert quickest(lambda: FolderHome(root).checkpoint("orders", "chk-9999")) < LONGEST


def test_fifty_jobs_are_listed_in_a_moment(tmp_path: Path) -> None:
    for number in range(50):
        home = make_job(tmp_path, f"job-{number:02d}")
        keep(home, 7)
        home.write_status({"state": "STOPPED", "lineage": RUN, "checkpoint": "chk-7"})
    found = list_jobs(tmp_path)
    assert len(found) == 50
    assert found[0].checkpoint_at == NOON + timedelta(seconds=7)
    assert quickest(lambda: list_jobs(tmp_path)) < LONGEST


def test_a_failure_has_its_stack_trace_without_secrets_and_old_ones_go(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGIN", "hunter22")
    home.write_job(RUN, flow="flow.py", options={"on": "kafka://k?sasl.password=${env:LOGIN}"})
    for second in range(25):
        note(home, second, "FAILURE", attempt=second, code="QUERY_FAILED")
        trace = f"Refused: {second} hunter22 password=secret99"
        add_trace(home, NOON + timedelta(seconds=second), trace)
    failures = FolderHome(home.root).exceptions("orders").failures
    assert failures[0].trace == "Refused: 24 *** password=***"
    assert [bool(failure.trace) for failure in failures] == [True] * 20 + [False] * 5
    assert "hunter22" not in (home.path / "traces.json").read_text()
    (home.path / "traces.json").write_text("{")
    assert [one.trace for one in FolderHome(home.root).exceptions("orders").failures] == [""] * 25


def test_a_stack_trace_begins_with_the_innermost_cause_and_is_bounded() -> None:
    try:
        try:
            raise ValueError("inner")
        except ValueError as error:
            raise HeadgateError("BAD", "outer") from error
    except HeadgateError as error:
        trace = format_trace(error, more="java.io.IOException: disk\n\tat X\n")
        long = format_trace(error, more="x" * 100_000)
    parts = ["java.io.IOException: disk", "ValueError: inner", "BAD outer"]
    places = [trace.index(part) for part in parts]
    assert places == sorted(places)
    assert f'File "{__file__}"' in trace
    assert 24_000 < len(long) < 25_000
    assert long.endswith(trace[-200:])
    assert "characters ..." in long
