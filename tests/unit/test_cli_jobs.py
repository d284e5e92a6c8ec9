"""The verbs on jobs as a user types them: what they print, and how they end."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_runs import run
from fake_supervisor import FakeSupervisor
from past_jobs import make_job
from typer.testing import CliRunner, Result

from headgate._codec import encode
from headgate.cli.app import app
from headgate.cli.lifecycle.control import fill_savepoint
from headgate.cli.parts.status import status_line
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_intent
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.setting_table import SETTINGS, Setting
from headgate.jobs.totals import Totals
from headgate.jobs.values import Consent, JobSnapshot, OpenBatch, RunOptions, Watcher

VERBS = ["jobs", "show", "logs", "lag", "start", "stop", "cancel", "restart", "pause", "resume"]
VERBS += ["checkpoints", "savepoint", "verify", "delete", "prune", "run"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobFolder:
    monkeypatch.chdir(tmp_path)
    return JobFolder(Path(".headgate"), "orders")


def error_of(result: Result) -> str:
    found = re.match(r"error ([A-Z_]+): ", result.stderr)
    assert found, result.stderr
    return found[1]


def test_jobs_lists_them_with_rate_lag_and_state(home: JobFolder) -> None:
    assert "headgate run FLOW" in run("jobs").stdout
    with FakeSupervisor(home):
        lines = [line.split() for line in run("jobs").stdout.splitlines()]
    assert lines[1][:2] == ["orders", "RUNNING"]
    assert lines[1][4:7] == ["321", "4KiB", "-"]


def test_jobs_tells_of_a_dead_one_what_to_do(home: JobFolder) -> None:
    home.write_job("first", flow="flow.py", options=encode(RunOptions()))
    with FakeSupervisor(home):
        pass
    result = run("jobs")
    assert result.exit_code == 0
    assert "DEAD" in result.stdout
    assert "hint: headgate start orders" in result.stderr
    (told,) = json.loads(run("jobs", "--json").stdout)
    assert (told["state"], told["todo"]) == ("DEAD", "headgate start orders")


def test_jobs_shows_a_crash_loop_first_with_its_failures_and_the_last_reason(
    home: JobFolder,
) -> None:
    crashing = JobFolder(home.root, "visits")
    reason = "attempt 12 failed: DRIVER_DIED it was killed"
    told: dict[str, Any] = {"failures": 12, "reason": reason, "healthy_since": None}
    with FakeSupervisor(home), FakeSupervisor(crashing, state="STARTING", **told):
        result, shown = run("jobs"), run("show", "visits").stdout
        listed = json.loads(run("jobs", "--json").stdout)
    lines = result.stdout.splitlines()
    assert re.match(r"visits +STARTING after 12 failures +1 +- ", lines[1]), lines
    assert re.match(r"orders +RUNNING +1 ", lines[2]), lines
    assert f"visits is STARTING after 12 failures: {reason}" in result.stderr
    assert "hint: headgate exceptions visits" in result.stderr
    assert [(job["job"], job["failing"], job["failures"]) for job in listed] == [
        ("visits", True, 12),
        ("orders", False, 0),
    ]
    assert re.search(r"^failures +12 in a row$", shown, re.MULTILINE)


def test_show_tells_why_the_last_attempt_ended(home: JobFolder) -> None:
    failure = {
        "attempt": 1,
        "at": "2026-11-15T12:00:00+00:00",
        "code": "QUERY_FAILED",
        "message": "the query failed\x1b[2J",
        "root_cause": "java.io.IOException: gone",
        "where": "driver",
    }
    with FakeSupervisor(home, last_failure=failure, attempt=2, restarts=1):
        shown = run("show", "orders").stdout
        told = json.loads(run("show", "orders", "--json").stdout)
    assert "attempt     2, after 1 restart\n" in shown
    assert "QUERY_FAILED: the query failed\\x1b[2J" in shown
    assert "root cause: java.io.IOException: gone (in the driver)" in shown
    assert re.search(r"in +orders +1,200 +4KiB left", shown)
    assert re.search(r"state +with-user +40 +2KiB", shown)
    assert told["last_failure"] == failure


def test_show_has_each_setting_and_where_it_came_from(home: JobFolder) -> None:
    options = RunOptions(settings={"retain": {"value": 3, "from": "headgate.toml"}})
    home.write_job("first", flow="flow.py", options=encode(options))
    assert re.search(r"retain +3 +headgate.toml", run("show", "orders").stdout)


def test_lag_has_bytes_for_each_source(home: JobFolder) -> None:
    with FakeSupervisor(home):
        lines = [line.split() for line in run("lag", "orders").stdout.splitlines()]
        told = json.loads(run("lag", "orders", "--json").stdout)
    assert lines[1:] == [["orders", "4KiB"], ["users", "0B"], ["all", "4KiB"]]
    assert told["lag_bytes"] == {"orders": 4096, "users": 0}
    assert told["total_bytes"] == 4096


def test_stop_reports_the_savepoint(home: JobFolder, tmp_path: Path) -> None:
    with FakeSupervisor(home):
        result = run("stop", "orders", "--savepoint", "kept", "--drain")
    assert result.exit_code == 0
    assert "Job 'orders' is STOPPED" in result.stdout
    assert f"Savepoint 'kept': 2KiB in {tmp_path / 'kept'}" in result.stdout
    again = run("stop", "orders")
    assert (again.exit_code, error_of(again)) == (2, "JOB_NOT_RUNNING")


@pytest.mark.parametrize(
    ("words", "filled"),
    [
        ("orders", "orders"),
        ("orders --savepoint", "orders --savepoint ''"),
        ("orders --savepoint --drain", "orders --savepoint '' --drain"),
        ("orders --savepoint kept", "orders --savepoint kept"),
        ("--savepoint kept orders", "--savepoint kept orders"),
        ("--savepoint orders", "--savepoint '' orders"),
        ("--savepoint orders --home x", "--savepoint '' orders --home x"),
        ("--savepoint orders --timeout 5s", "--savepoint '' orders --timeout 5s"),
    ],
)
def test_a_savepoint_may_stand_without_a_folder(words: str, filled: str) -> None:
    assert fill_savepoint(shlex.split(words)) == shlex.split(filled)


def test_stop_with_a_savepoint_of_no_name_prints_json(home: JobFolder) -> None:
    with FakeSupervisor(home):
        told = json.loads(run("stop", "orders", "--savepoint", "--json").stdout)
    assert told["state"] == "STOPPED"
    assert told["savepoint"]["folder"] == str(home.savepoints_folder / "sp-7")


def test_pause_resume_and_cancel_say_what_the_job_is(home: JobFolder) -> None:
    with FakeSupervisor(home):
        assert run("pause", "orders").stdout == "Job 'orders' is PAUSED\n"
        again = run("pause", "orders")
        assert (again.exit_code, error_of(again)) == (2, "ILLEGAL_TRANSITION")
        assert "hint: headgate resume orders" in again.stderr
        assert json.loads(run("resume", "orders", "--json").stdout)["state"] == "RUNNING"
        assert run("cancel", "orders").stdout == "Job 'orders' is CANCELED\n"


def test_a_dry_run_of_cancel_says_what_would_be_lost(home: JobFolder) -> None:
    with FakeSupervisor(home):
        assert "nothing would be lost" in run("cancel", "orders", "--dry-run").stdout
        home.write_job("first", flow="flow.py", options=encode(RunOptions(delete_on_cancel=True)))
        assert "would be deleted" in run("cancel", "orders", "--dry-run").stdout
        told = json.loads(run("cancel", "orders", "--dry-run", "--json").stdout)
        assert (told["state"], told["deletes_state"], told["deletes"]) == ("RUNNING", True, [])
        assert find_intent(home) is None


def test_delete_lists_what_goes_and_asks_in_a_terminal(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeSupervisor(home):
        refused = run("delete", "orders", "--yes")
        assert error_of(refused) == "JOB_RUNNING"
        assert "headgate cancel orders" in refused.stderr
    planned = run("delete", "orders", "--dry-run").stdout
    assert planned.startswith("Job 'orders' would be deleted\nremoves:\n  logs, events")
    refused = run("delete", "orders")
    assert (refused.exit_code, error_of(refused)) == (2, "NOT_CONFIRMED")
    monkeypatch.setattr("headgate.cli.lifecycle.deletion.has_terminal", lambda: True)
    declined = CliRunner().invoke(app, ["delete", "orders"], input="n\n")
    assert (declined.exit_code, home.path.exists()) == (1, True)
    assert "logs, events, measurements and settings: " in declined.stderr
    assert "Nothing was deleted" in declined.stderr
    agreed = CliRunner().invoke(app, ["delete", "orders"], input="y\n")
    assert (agreed.exit_code, home.path.exists()) == (0, False)
    assert re.search(r"Job 'orders' was deleted; .* were freed\n$", agreed.stdout)
    assert error_of(run("delete", "..", "--yes")) == "JOB_NOT_FOUND"


def test_delete_and_prune_print_json(home: JobFolder) -> None:
    make_job(home.root, "orders")
    run_folder = home.run_folder("20260101T000000-abcdef")
    run_folder.mkdir(parents=True)
    (run_folder / "left").write_text("x" * 100)
    pruned = json.loads(run("prune", "orders", "--json").stdout)
    assert (pruned["bytes"], pruned["dry_run"]) == (100, False)
    assert [removal["what"] for removal in pruned["removes"]] == [f"run {run_folder.name}"]
    said = run("prune", "orders").stdout
    assert said == "Job 'orders' has no files of old runs to remove\n"
    deleted = json.loads(run("delete", "orders", "--yes", "--json").stdout)
    assert (deleted["job"], deleted["dry_run"]) == ("orders", False)


def test_a_verb_that_waits_tells_of_it_and_gives_up(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.cli.parts.place._NOTE_EVERY", timedelta(seconds=0.1))
    with FakeSupervisor(home, deaf=True):
        result = run("stop", "orders", "--timeout", "400ms")
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("job 'orders' is RUNNING after 0s, batch 7")
    assert 2 <= len([line for line in lines if line.startswith("job ")]) <= 5
    assert any(line.startswith("error WAITED_TOO_LONG") for line in lines)


@pytest.mark.parametrize("verb", [*VERBS[1:10], *VERBS[10:15]])
def test_a_job_that_is_not_there_is_refused_with_those_that_are(home: JobFolder, verb: str) -> None:
    home.write_status({"state": "STOPPED"})
    result = run(verb, "oders")
    assert (result.exit_code, error_of(result)) == (2, "JOB_NOT_FOUND")
    assert " are orders\n" in result.stderr
    assert "hint: did you mean 'orders'?" in result.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_examples(verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Examples\s+headgate {verb}", result.stdout)


def test_the_names_of_jobs_complete(home: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("orders", "visits"):
        JobFolder(home.root, name).write_status({"state": "STOPPED"})
    for words, found in (("stop o", {"orders"}), ("show ", {"orders", "visits"})):
        result = CliRunner().invoke(
            app,
            [],
            prog_name="headgate",
            env={
                "_HEADGATE_COMPLETE": "complete_bash",
                "COMP_WORDS": f"headgate {words}",
                "COMP_CWORD": "2",
            },
        )
        assert set(result.stdout.split()) == found


def test_logs_searches_the_whole_log_by_text_and_level(home: JobFolder) -> None:
    home.write_status({"state": "STOPPED"})
    home.log_file.parent.mkdir(parents=True)
    first = "2026-11-18 14:00:00.000 ERROR A: Lost\njava.io.IOException\n\tat X\n"
    rest = "".join(f"2026-11-18 14:00:01.{n:03} INFO B: line {n}\n" for n in range(500))
    home.log_file.write_text(first + rest)
    assert run("logs", "orders", "--grep", "LOST").stdout == first.splitlines()[0] + "\n"
    assert run("logs", "orders", "--level", "warn").stdout == first
    assert run("logs", "orders", "--level", "warn", "--grep", "at x").stdout == "\tat X\n"
    last = run("logs", "orders", "--grep", "line", "-n", "1")
    assert last.stdout.endswith(" INFO B: line 499\n")
    assert "500 lines match; --lines 500 prints all" in last.stderr
    assert run("logs", "orders", "--grep", "nothing").stdout == ""
    assert error_of(run("logs", "orders", "--driver", "--level", "warn")) == "LOG_WITHOUT_LEVELS"


def test_logs_gives_the_last_lines_of_the_log_that_was_asked_for(home: JobFolder) -> None:
    home.write_status({"state": "STOPPED"})
    missing = run("logs", "orders")
    assert (missing.exit_code, error_of(missing)) == (2, "LOG_NOT_FOUND")
    home.log_file.parent.mkdir()
    home.log_file.write_bytes(b"".join(b"line %d\n" % number for number in range(30_000)))
    assert run("logs", "orders", "-n", "2").stdout == "line 29998\nline 29999\n"
    assert len(run("logs", "orders").stdout.splitlines()) == 50
    assert run("logs", "orders", "-n", "0").stdout == ""
    assert len(run("logs", "orders", "-n", "40000").stdout.splitlines()) == 30_000
    home.driver_output.write_text("out of memory\n")
    assert run("logs", "orders", "--driver").stdout == "out of memory\n"
    assert "hint: headgate logs orders --driver" in run("logs", "orders", "--supervisor").stderr
    assert error_of(run("logs", "orders", "--driver", "--supervisor")) == "BAD_USAGE"


# Running.


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """Take note of what a run was asked for instead of running it."""
    found: list[RunOptions] = []

    def note(_flow: str, options: RunOptions, _watcher: Watcher, **_: Any) -> JobSnapshot:
        found.append(options)
        return snapshot(JobState.FINISHED)

    monkeypatch.setattr("headgate.jobs.startup.foreground.run_job", note)
    return found


def snapshot(state: JobState) -> JobSnapshot:
    return JobSnapshot(
        job="orders",
        state=state,
        lineage="first",
        resumed_from=None,
        loading=False,
        elapsed=timedelta(seconds=1),
        totals=Totals(),
        folder=Path("jobs/orders"),
    )


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RESTARTING, JobState.FAILED])
def test_the_line_of_a_job_whose_attempt_failed_says_why(state: JobState) -> None:
    reason = "attempt 2 failed: DRIVER_DIED it was killed"
    line = status_line(replace(snapshot(state), attempt=3, reason=reason)).plain
    assert line == f"{state} orders · attempt 3 · 1s · {reason}"


def test_run_has_the_documented_defaults(asked: list[RunOptions], tmp_path: Path) -> None:
    assert run("run", "flow.py").exit_code == 0
    (options,) = asked
    expected = RunOptions(
        on=f"files:{tmp_path / '.headgate/topics'}",
        settings=options.settings,
    )
    assert options == expected
    assert options.settings["retain"] == {"value": 10, "from": "default"}


def test_what_the_user_agrees_to_goes_with_the_start(asked: list[RunOptions]) -> None:
    assert run("run", "flow.py", "--open-batch", "skip", "--allow-repeats").exit_code == 0
    assert asked[0].consent == Consent(open_batch=OpenBatch.SKIP, allow_repeats=True)


def test_an_open_batch_may_be_chosen_with_from_latest_only(asked: list[RunOptions]) -> None:
    chosen = ("--open-batch", "skip", "--from")
    assert run("run", "flow.py", *chosen, "latest").exit_code == 0
    assert asked[0].restore_from == "latest"
    refused = run("run", "flow.py", *chosen, "chk-3")
    assert refused.exit_code == 2
    assert "--open-batch goes with --from latest only" in refused.stderr
    assert len(asked) == 1


def test_a_run_may_close_its_windows_at_its_end(asked: list[RunOptions]) -> None:
    assert run("run", "flow.py", "--drain").exit_code == 0
    assert asked[0].drain
    assert "exclude each other" in run("run", "flow.py", "--drain", "--watch").stderr


def test_flags_win_over_the_file_and_the_file_over_defaults(
    asked: list[RunOptions], tmp_path: Path
) -> None:
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "headgate.toml").write_text(
        '[job]\nretain = 3\nmin-pause = "500ms"\nrestart = "fixed-delay:5,10s"\n'
        '[profiles.large]\ndriver-memory = "8GiB"\nmaster = "local[4]"\n'
    )
    flags = "--retain 5 --retain-for 24h --on-cancel delete --checkpoint-every 30s --strict"
    result = run("run", "flows/flow.py", *flags.split(), "--profile", "large", "-p", "4")
    assert result.exit_code == 0, result.stderr
    (options,) = asked
    assert (options.retain, options.min_pause) == (5, timedelta(milliseconds=500))
    assert options.retain_for == timedelta(hours=24)
    assert options.checkpoint_every == timedelta(seconds=30)
    assert options.restart == "fixed-delay:5,10s"
    assert (options.delete_on_cancel, options.strict, options.parallelism) == (True, True, 4)
    assert (options.driver_memory, options.master) == (8 << 30, "local[4]")
    origins = {name: each["from"] for name, each in options.settings.items()}
    assert origins["retain"] == "flag"
    assert origins["restart"] == "headgate.toml"
    assert origins["batch-every"] == "default"


def test_checkpoints_are_kept_at_a_url_and_unknown_stores_are_refused(
    asked: list[RunOptions], tmp_path: Path
) -> None:
    assert run("run", "flow.py", "--checkpoints", f"file://{tmp_path}/kept").exit_code == 0
    assert run("run", "flow.py", "--checkpoints", "s3a://bucket/jobs").exit_code == 0
    places = [str(options.checkpoints) for options in asked]
    assert places == [f"{tmp_path}/kept", "s3a://bucket/jobs"]
    result = run("run", "flow.py", "--checkpoints", "hdfs://name/jobs")
    assert result.exit_code == 2
    assert "error BAD_STORE: cannot use hdfs://name/jobs" in result.stderr
    assert len(asked) == 2


@pytest.mark.parametrize(
    "setting", [each for each in SETTINGS if "run" in each.verbs], ids=lambda each: each.name
)
def test_each_setting_is_an_option_of_run(
    asked: list[RunOptions], tmp_path: Path, setting: Setting
) -> None:
    (tmp_path / "headgate.toml").write_text("[profiles.large]\n")
    result = run("run", "flow.py", f"--{setting.name}", setting.shown_example.strip('"'))
    assert result.exit_code == 0, result.stderr
    given = {name for name, each in asked[0].settings.items() if each["from"] == "flag"}
    assert given == {setting.name}


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--retain 0", "BAD_SETTING"),
        ("--min-pause soon", "BAD_DURATION"),
        ("--max-batch much", "BAD_SIZE"),
        ("--restart often", "BAD_RESTART"),
        ("--on-cancel keep", "BAD_USAGE"),
        ("--profile large", "PROFILE_NOT_FOUND"),
        ("--fresh --from chk-1", "BAD_USAGE"),
        ("--fresh --open-batch skip", "BAD_USAGE"),
        ("--from chk-1 --open-batch repeat", "BAD_USAGE"),
        ("--open-batch drop", "BAD_USAGE"),
    ],
)
def test_a_bad_flag_is_refused_before_anything_starts(
    asked: list[RunOptions], flags: str, code: str
) -> None:
    result = run("run", "flow.py", *flags.split())
    assert (result.exit_code, error_of(result), asked) == (2, code, [])


def test_a_run_that_is_cancelled_ends_as_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(*_: Any, **__: Any) -> JobSnapshot:
        return snapshot(JobState.CANCELED)

    monkeypatch.setattr("headgate.jobs.startup.foreground.run_job", cancelled)
    result = run("run", "flow.py")
    assert result.exit_code == 130
    assert "was canceled" in result.stdout


def test_a_start_that_fell_back_is_told_of(
    home: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fell_back(_flow: str, _options: RunOptions, watcher: Watcher, **_: Any) -> JobSnapshot:
        watcher.on_snapshot(replace(snapshot(JobState.RUNNING), notice="went back to chk-3"))
        return snapshot(JobState.FINISHED)

    monkeypatch.setattr("headgate.jobs.startup.foreground.run_job", fell_back)
    assert "warning: went back to chk-3\n" in run("run", "flow.py").stderr
    with FakeSupervisor(home, notice="went back to chk-3"):
        assert "warning     went back to chk-3\n" in run("show", "orders").stdout
