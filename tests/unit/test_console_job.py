"""The page of one job: what can be asked of it, and what it tells."""

from __future__ import annotations

from dataclasses import replace

from console_job import NOW, make_job

from headgate._codec import encode
from headgate.jobs.control.verbs import Loss
from headgate.jobs.removal.deletion import Deletion, Removal
from headgate.jobs.removal.pruning import Pruning
from headgate.jobs.views.exceptions import Exceptions, JobFailure
from headgate.jobs.views.job import JobView
from headgate.server.console.pages.overview import job_head
from headgate.server.console.panels.job_actions import (
    actions_for,
    ask_delete,
    ask_for,
    ask_prune,
    describe_loss,
)
from headgate.server.console.panels.job_history import describe_facts, show_failures
from headgate.server.console.parts.formats import NONE
from headgate.server.console.parts.templates import render


def _action_names(job: JobView) -> list[str]:
    return list(actions_for(job))


def test_what_can_be_asked_of_a_job_depends_on_its_state() -> None:
    assert _action_names(make_job()) == [
        "savepoint", "pause", "restart", "stop", "stop-savepoint", "prune", "cancel",
    ]  # fmt: skip
    assert "resume" in _action_names(make_job(state="PAUSED"))
    assert "pause" not in _action_names(make_job(state="PAUSED"))
    assert "resume" in _action_names(make_job(state="RESTARTING", status={"held": True}))
    assert _action_names(make_job(state="STOPPING")) == ["cancel"]
    for state in ("STOPPED", "FAILED", "DEAD", "FINISHED", "CANCELED"):
        assert _action_names(make_job(state=state)) == ["start", "savepoint", "prune", "delete"]
    assert _action_names(make_job(state="UNREADABLE")) == []


def test_every_action_says_what_will_happen() -> None:
    for state in ("RUNNING", "PAUSED", "STOPPED"):
        job = make_job(state=state)
        for name, action in actions_for(job).items():
            question = ask_for(action, job)
            assert question.says
            assert all(sentence.endswith(".") for sentence in question.says)
            assert job.name in question.title
            assert "{" not in " ".join((question.title, *question.says, question.doing))
            assert question.dangerous is (name in ("cancel", "prune", "delete"))


def test_a_savepoint_of_a_running_job_lets_it_go_on() -> None:
    for state, says in (("RUNNING", "runs on"), ("STOPPED", "stays STOPPED")):
        job = make_job(state=state)
        assert says in ask_for(actions_for(job)["savepoint"], job).says[-1]


def test_a_finished_job_starts_at_the_positions_it_had_reached() -> None:
    for state, says in (("FINISHED", "from the positions"), ("STOPPED", "newest checkpoint")):
        job = make_job(state=state)
        assert says in ask_for(actions_for(job)["start"], job).says[-1]


def test_a_deletion_names_what_goes_and_what_stays() -> None:
    job = make_job(state="STOPPED")
    run = Removal("run a", (), 0)
    deletion = Deletion(
        job=job.name,
        removes=(Removal("2 savepoints", (), 2048), run),
        stays=("topics on k: a",),
        bytes=2048,
    )
    keeping = replace(deletion, removes=(run,), stays=("savepoints in /s",), bytes=0)
    question = ask_delete(actions_for(job)["delete"], job, deletion, keeping)
    assert question.says[1:] == (
        "2 KiB are freed: 2 savepoints (2 KiB); run a (0 B).",
        "These stay: topics on k: a.",
    )
    assert question.choice is not None
    assert question.choice.option == "keep_savepoints"
    assert "Keep 2 savepoints" in question.choice.label
    assert question.choice.says[1:] == (
        "0 B are freed: run a (0 B).",
        "These stay: savepoints in /s.",
    )
    assert ask_delete(actions_for(job)["delete"], job, keeping, keeping).choice is None


def test_a_pruning_names_what_goes_what_stays_and_what_was_freed() -> None:
    job = make_job()
    prune = actions_for(job)["prune"]
    files, run = Removal("Spark files of run a", (), 1024), Removal("run a", (), 3072)
    kept = "1 checkpoint of run a: chk-1"
    pruning = Pruning(job=job.name, removes=(files,), stays=(kept,), bytes=1024)
    whole = Pruning(job=job.name, removes=(run,), stays=(), bytes=3072)
    question = ask_prune(prune, job, pruning, whole)
    assert question.says[1:] == (
        "1 KiB are freed: Spark files of run a (1 KiB).",
        f"These stay: {kept}.",
    )
    assert question.choice is not None
    assert question.choice.option == "drop_checkpoints"
    assert question.choice.label.endswith("2 KiB more")
    assert question.choice.says[1:] == ("3 KiB are freed: run a (3 KiB).",)
    assert question.tell_result is not None
    assert question.tell_result(encode(whole)) == "3 KiB of 1 old run freed"
    assert ask_prune(prune, job, pruning, pruning).choice is None


def test_a_job_without_old_runs_has_nothing_to_prune() -> None:
    job = make_job()
    nothing = Pruning(job=job.name, removes=(), stays=(), bytes=0)
    question = ask_prune(actions_for(job)["prune"], job, nothing, nothing)
    assert question.says == (f"Job {job.name} has no files of old runs to remove.",)
    assert question.action == "", "the user can only go back"


def test_a_cancel_tells_what_it_takes_along() -> None:
    assert "stay" in describe_loss(Loss(make_job(), False, (), 0))
    assert "(2 KiB) are deleted" in describe_loss(Loss(make_job(), True, (), 2048))


def test_the_head_tells_why_a_job_waits_and_how_long() -> None:
    job = make_job(
        state="RESTARTING", reason="QUERY_FAILED <no> disk", attempt=3,
        status={"restarts": 2, "restart_after_s": 10.0, "lineage": "run-1"},
    )  # fmt: skip
    shown = job_head(job, NOW)
    assert "&lt;no&gt; disk" in shown
    assert "started again after 10s" in shown
    assert "3, 2 restarts" in shown
    assert "started again" not in job_head(make_job(), NOW)


def test_failures_show_the_root_cause_first() -> None:
    failure = JobFailure(
        root_cause="java.io.IOException: disk\n at X",
        attempt=2,
        at=NOW,
        code="QUERY_FAILED",
        message="cannot go on",
        where="query",
        hint="headgate start orders",
        retryable=False,
        trace="java.io.IOException: disk\n\tat A.<init>(A.java:1)",
    )
    shown = show_failures(Exceptions("orders", (failure,), (), 12))
    assert "<summary>Stack trace</summary><pre>java.io.IOException: disk\n" in shown
    assert "A.&lt;init&gt;(A.java:1)" in shown
    assert shown.index("java.io.IOException: disk") < shown.index("QUERY_FAILED")
    assert "and 11 earlier" in shown
    assert "<code>headgate start orders</code>" in shown
    assert "has failed" in show_failures(Exceptions("orders", (), (), 0))


def test_facts_of_an_event_are_written_for_people() -> None:
    facts = {"checkpoint": "chk-7", "full_bytes": 2048, "took_ms": 131, "reason": "", "x": None}
    assert describe_facts(facts) == "checkpoint chk-7, full bytes 2 KiB, took 131 ms"
    assert describe_facts({}) == NONE


def test_settings_that_somebody_chose_stand_out() -> None:
    settings = {
        "retain": {"value": 10, "from": "default"},
        "on": {"value": "files:t", "from": "flag"},
    }
    shown = render("settings", settings=settings)
    assert '<tr data-key="retain">' in shown
    assert '<tr data-key="on" class="hg-chosen">' in shown
    assert "<code>10</code>" in shown
    assert "not known yet" in render("settings", settings={})
