"""The verbs on jobs, against a supervisor without Spark: what they wait for and what they say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from fake_supervisor import FakeSupervisor

from headgate._codec import encode
from headgate.errors import HeadgateError
from headgate.jobs.control.requests import Patience
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_intent, has_supervisor
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.values import Consent, OpenBatch, RunOptions
from headgate.jobs.views.job import DEAD, UNREADABLE, JobView, list_jobs, view_job


@pytest.fixture
def home(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path, "orders")


def fails(code: str, call: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        call()
    assert caught.value.code == code
    return caught.value


def store(home: JobFolder, **options: Any) -> None:
    home.write_job("first", flow="/flows/flow.py", options=encode(RunOptions(**options)))


def test_stop_returns_once_the_job_is_stopped_and_nobody_holds_it(home: JobFolder) -> None:
    with FakeSupervisor(home):
        stopped = FolderHome(home.root).stop("orders")
        assert stopped.view.state == "STOPPED"
        assert not has_supervisor(home)
        assert stopped.savepoint is None


@pytest.mark.parametrize("drain", [True, False])
def test_stop_says_where_its_savepoint_is(home: JobFolder, tmp_path: Path, drain: bool) -> None:
    with FakeSupervisor(home):
        stopped = FolderHome(home.root).stop(
            "orders", savepoint=str(tmp_path / "kept"), drain=drain
        )
    assert stopped.savepoint is not None
    assert stopped.savepoint.folder == tmp_path / "kept"
    asked = find_intent(home)
    assert asked is not None
    assert asked.arguments == {"drain": drain, "savepoint": str(tmp_path / "kept")}


def test_a_savepoint_without_a_folder_lies_in_the_jobs_own(home: JobFolder) -> None:
    with FakeSupervisor(home):
        stopped = FolderHome(home.root).stop("orders", savepoint="")
    assert stopped.savepoint is not None
    assert stopped.savepoint.folder.parent == home.savepoints_folder


def test_a_savepoints_folder_is_told_as_the_supervisor_finds_it(
    home: JobFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeSupervisor(home):
        FolderHome(home.root).take_savepoint("orders", to=Path("kept"))
    asked = find_intent(home)
    assert asked is not None
    assert asked.arguments == {"to": str(tmp_path / "kept")}


def test_a_stop_whose_savepoint_failed_says_so_and_that_the_job_has_stopped(
    home: JobFolder,
) -> None:
    with FakeSupervisor(home, savepoint=_full):
        error = fails(
            "CHECKPOINT_NOT_WRITTEN", lambda: FolderHome(home.root).stop("orders", savepoint="")
        )
    assert "is STOPPED, and its savepoint was not taken: the disk is full" in error.message
    assert error.hint == "headgate savepoint orders"
    assert error.exit_code == 2


def test_a_savepoint_that_failed_leaves_the_job_running(home: JobFolder) -> None:
    with FakeSupervisor(home, savepoint=_full):
        fails("CHECKPOINT_NOT_WRITTEN", lambda: FolderHome(home.root).take_savepoint("orders"))
        assert view_job(home).state == "RUNNING"


def _full(_to: str) -> dict[str, Any]:
    raise HeadgateError("CHECKPOINT_NOT_WRITTEN", "the disk is full")


def test_a_place_that_is_taken_is_refused_before_the_job_is_stopped(
    home: JobFolder, tmp_path: Path
) -> None:
    with FakeSupervisor(home):
        fails(
            "CHECKPOINT_EXISTS",
            lambda: FolderHome(home.root).stop("orders", savepoint=str(tmp_path)),
        )
        assert view_job(home).state == "RUNNING"


def test_cancel_ends_a_job_that_is_paused(home: JobFolder) -> None:
    with FakeSupervisor(home):
        assert FolderHome(home.root).pause("orders").state == "PAUSED"
        assert FolderHome(home.root).cancel("orders").state == "CANCELED"


def test_pause_and_resume_wait_until_it_is_so(home: JobFolder) -> None:
    with FakeSupervisor(home):
        assert FolderHome(home.root).pause("orders").state == "PAUSED"
        assert FolderHome(home.root).resume("orders").state == "RUNNING"


def test_what_a_supervisor_refuses_is_raised_in_its_words(home: JobFolder) -> None:
    with FakeSupervisor(home):
        error = fails("ILLEGAL_TRANSITION", lambda: FolderHome(home.root).resume("orders"))
        assert error.message == "cannot resume job 'orders': it is RUNNING"
        # The refusal was of that intent, not of the next one.
        assert FolderHome(home.root).pause("orders").state == "PAUSED"


@pytest.mark.parametrize(
    "verb", [FolderHome.stop, FolderHome.cancel, FolderHome.pause, FolderHome.resume]
)
def test_a_verb_on_a_job_that_is_not_running_says_what_it_is(
    home: JobFolder, verb: Callable[..., object]
) -> None:
    with FakeSupervisor(home):
        FolderHome(home.root).stop("orders")
    error = fails("JOB_NOT_RUNNING", lambda: verb(FolderHome(home.root), "orders"))
    assert "it is STOPPED" in error.message
    assert error.hint == "headgate start orders"
    assert error.exit_code == 2


@pytest.mark.parametrize(
    "verb",
    [
        FolderHome.stop,
        FolderHome.cancel,
        FolderHome.pause,
        FolderHome.take_savepoint,
        FolderHome.last_start,
    ],
)
def test_a_verb_on_a_job_that_is_not_there_names_those_that_are(
    home: JobFolder, verb: Callable[..., object]
) -> None:
    for name in ("orders", "visits"):
        JobFolder(home.root, name).write_status({"state": "STOPPED"})
    error = fails("JOB_NOT_FOUND", lambda: verb(FolderHome(home.root), "oders"))
    assert error.message.endswith(" are orders, visits")
    assert error.hint == "did you mean 'orders'?"
    fails("JOB_NOT_FOUND", lambda: verb(FolderHome(home.root), "../jobs/orders"))
    assert fails("JOB_NOT_FOUND", lambda: verb(FolderHome(home.root / "no"), "orders")).hint


def test_a_verb_gives_up_after_a_while_and_what_was_asked_still_holds(home: JobFolder) -> None:
    told: list[tuple[str, float]] = []

    def tell(view: JobView, waited: timedelta) -> None:
        told.append((view.state, waited.total_seconds()))

    with FakeSupervisor(home, deaf=True):
        patience = Patience(timedelta(seconds=0.3), tell)
        error = fails(
            "WAITED_TOO_LONG", lambda: FolderHome(home.root).stop("orders", patience=patience)
        )
    assert "after 300ms it is RUNNING" in error.message
    assert told
    assert {state for state, _ in told} == {"RUNNING"}
    asked = find_intent(home)
    assert asked is not None
    assert asked.verb is Verb.STOP


def test_a_verb_notices_that_the_supervisor_died(home: JobFolder) -> None:
    with FakeSupervisor(home, deaf=True) as supervisor:
        threading.Timer(0.2, supervisor.vanish).start()
        error = fails("JOB_ENDED", lambda: FolderHome(home.root).stop("orders"))
    assert "is DEAD" in error.message
    assert error.exit_code == 3


def test_two_verbs_at_once_are_not_mixed_up(home: JobFolder) -> None:
    with FakeSupervisor(home, deaf=True):
        patience = Patience(timedelta(seconds=0.2))
        fails("WAITED_TOO_LONG", lambda: FolderHome(home.root).pause("orders", patience=patience))
        fails("JOB_BUSY", lambda: FolderHome(home.root).stop("orders", patience=patience))


def test_a_restart_of_a_job_that_never_ran_leaves_it_alone(home: JobFolder) -> None:
    with FakeSupervisor(home):
        fails("JOB_NEVER_RAN", lambda: FolderHome(home.root).restart("orders"))
        assert view_job(home).state == "RUNNING"


@pytest.mark.parametrize("options", [{"batch_every": "soon"}, {"delivery": "maybe"}, None])
def test_corrupted_options_are_refused_with_the_name_of_their_file(
    home: JobFolder, options: dict[str, Any] | None
) -> None:
    home.write_json("job.json", {"flow": "/flows/flow.py", "options": options})
    error = fails("JOB_FILE_BROKEN", lambda: FolderHome(home.root).start("orders"))
    assert str(home.path / "job.json") in error.message


def test_a_restart_stops_the_job_before_it_starts_it_again(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, RunOptions, bool]] = []
    monkeypatch.setattr(
        "headgate.jobs.control.verbs.start_detached",
        lambda flow, options: started.append((flow, options, has_supervisor(home))),
    )
    with FakeSupervisor(home):
        store(home, retain=3, verbose=True)
        FolderHome(home.root).restart("orders", consent=Consent(open_batch=OpenBatch.SKIP))
    FolderHome(home.root).restart("orders")
    # What was agreed to once is not stored.
    consents = [options.consent.open_batch for _, options, _ in started]
    assert consents == [OpenBatch.SKIP, None]
    for flow, options, running in started:
        assert (flow, running) == ("/flows/flow.py", False)
        assert (options.retain, options.verbose, options.home) == (3, False, home.root)
    assert len(started) == 2


def test_a_job_is_started_again_with_the_options_it_had(home: JobFolder) -> None:
    bounds = {"until_caught_up": True, "drain": True}
    store(home, retain_for=timedelta(hours=1), restart="fixed-delay:5,10s", **bounds)
    flow, options = FolderHome(home.root).last_start("orders")
    assert flow == "/flows/flow.py"
    assert options.retain_for == timedelta(hours=1)
    assert options.restart == "fixed-delay:5,10s"
    assert (options.until_caught_up, options.drain) == (False, False), "those were for one start"


@pytest.mark.parametrize("deletes", [True, False])
def test_a_dry_run_tells_whether_a_cancel_would_delete_and_does_nothing(
    home: JobFolder, deletes: bool
) -> None:
    with FakeSupervisor(home):
        store(home, delete_on_cancel=deletes)
        assert FolderHome(home.root).preview_cancel("orders").deletes_state is deletes
        assert view_job(home).state == "RUNNING"
        assert find_intent(home) is None
    fails("JOB_NOT_RUNNING", lambda: FolderHome(home.root).preview_cancel("orders"))


def test_states_of_earlier_releases_are_read_and_shown_in_one_spelling(home: JobFolder) -> None:
    store(home)
    assert JobState("CANCELLING") is JobState.CANCELING
    home.write_status({"state": "CANCELLING"})
    assert "it was CANCELING" in view_job(home).reason
    home.add_event(datetime.now(UTC), "CANCELLING")
    home.add_event(datetime.now(UTC), JobState.CANCELED)
    shown = FolderHome(home.root).events("orders", limit=2).events
    assert [event.kind for event in shown] == ["CANCELING", "CANCELED"]


def test_a_job_whose_supervisor_was_killed_is_dead_with_what_to_do(home: JobFolder) -> None:
    store(home)
    with FakeSupervisor(home):
        (view,) = list_jobs(home.root)
        assert (view.state, view.is_alive, view.records_per_s) == ("RUNNING", True, 321)
        assert view.lag_bytes == 4096
        assert view.uptime is not None
    (view,) = list_jobs(home.root)
    assert (view.state, view.is_alive, view.uptime) == (DEAD, False, None)
    assert "it was RUNNING" in view.reason
    assert view.todo == "headgate start orders"
    assert not view.is_final
    (home.path / "job.json").unlink()
    assert view_job(home).todo == "headgate run FLOW", "nothing says how to start it"


NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
CRASHES: dict[str, Any] = {
    "failures": 3,
    "reason": "attempt 3 failed: DRIVER_DIED it was killed",
    "attempt": 4,
}


@pytest.mark.parametrize(
    ("state", "failures", "runs_for", "failing"),
    [
        ("STARTING", 3, None, True),
        ("RESTARTING", 1, None, True),
        ("RUNNING", 3, 599, True),
        # It may have recovered.
        ("RUNNING", 1, 60, False),
        ("RUNNING", 3, 600, False),
        ("STOPPING", 3, 60, False),
    ],
)
def test_a_job_whose_attempts_fail_is_failing(
    home: JobFolder, state: str, failures: int, runs_for: int | None, failing: bool
) -> None:
    began = None if runs_for is None else NOW.isoformat()
    told = {**CRASHES, "state": state, "failures": failures, "healthy_since": began}
    with FakeSupervisor(home, started_at=(NOW - timedelta(days=1)).isoformat(), **told):
        view = view_job(home, clock=FakeClock(NOW + timedelta(seconds=runs_for or 0)))
    assert view.failures == (0 if runs_for == 600 else failures)
    assert view.is_failing is view.needs_attention is failing
    assert view.todo == ("headgate exceptions orders" if failing else "")
    # A job that does not run has no uptime, and a restart begins a new one.
    assert view.uptime == (None if runs_for is None else timedelta(seconds=runs_for))


def test_jobs_that_need_attention_are_listed_first(home: JobFolder) -> None:
    for name, state in (("a", "STOPPED"), ("z", "FAILED")):
        JobFolder(home.root, name).write_status({"state": state})
    crashing = JobFolder(home.root, "visits")
    with FakeSupervisor(home), FakeSupervisor(crashing, state="STARTING", **CRASHES):
        views = list_jobs(home.root)
    assert [view.name for view in views] == ["z", "visits", "orders", "a"]


def test_a_job_that_ended_is_what_it_ended_as(home: JobFolder) -> None:
    with FakeSupervisor(home):
        FolderHome(home.root).stop("orders")
    (view,) = list_jobs(home.root)
    assert (view.state, view.is_final, view.todo) == ("STOPPED", True, "")


def test_a_damaged_job_does_not_hide_the_others(home: JobFolder) -> None:
    home.write_status({"state": "STOPPED"})
    broken = JobFolder(home.root, "broken")
    broken.path.mkdir()
    (broken.path / "status.json").write_text("{")
    states = {view.name: view.state for view in list_jobs(home.root)}
    assert states == {"broken": UNREADABLE, "orders": "STOPPED"}


def test_a_start_that_was_refused_makes_no_job(home: JobFolder) -> None:
    with home.locked():
        assert [view.state for view in list_jobs(home.root)] == ["STARTING"]
    assert list_jobs(home.root) == []


def test_show_has_the_last_failure_and_the_settings(home: JobFolder) -> None:
    settings = {"retain": {"value": 3, "from": "flag"}}
    failure = {"attempt": 1, "code": "QUERY_FAILED", "message": "no", "root_cause": "E: no"}
    with FakeSupervisor(home, last_failure=failure, attempt=2, restarts=1):
        store(home, settings=settings)
        told = json.loads(json.dumps(encode(FolderHome(home.root).details("orders"))))
    assert told["settings"] == settings
    assert told["last_failure"] == failure
    assert (told["attempt"], told["restarts"], told["flow"]) == (2, 1, "/flows/flow.py")
    assert told["lag_bytes"] == {"orders": 4096, "users": 0}
    assert told["folder"] == str(home.path)


def test_a_savepoint_of_a_job_that_has_no_run_is_refused(home: JobFolder) -> None:
    home.write_status({"state": "FAILED"})
    fails("NOTHING_COMMITTED", lambda: FolderHome(home.root).take_savepoint("orders"))
