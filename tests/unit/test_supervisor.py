"""The supervisor performs what the machine decides: with children that are made up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from eventually import eventually
from fake_clock import FakeClock

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.engine.attempt.progress import BatchReport, SourceProgress
from headgate.errors import HeadgateError
from headgate.jobs.attempts.wire import (
    AttemptSpec,
    Batch,
    Ended,
    Failed,
    News,
    Running,
    SourceEvent,
)
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.failures import Failure
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.machine import Machine
from headgate.jobs.lifecycle.restart import parse_strategy
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Order, Verb
from headgate.jobs.runs.publishing import Publisher
from headgate.jobs.supervision.meter import Meter
from headgate.jobs.supervision.supervisor import Supervisor
from headgate.jobs.totals import Totals
from headgate.jobs.values import JobSnapshot, Watcher

NOW = datetime(2026, 11, 15, 10, tzinfo=UTC)


@dataclass
class Child:
    """An attempt that tells what it was given, and ends when that is told or it is killed."""

    clock: FakeClock
    script: list[News]
    exit: str = "exit code 0"
    lingers: bool = False
    orders: list[Order] = field(default_factory=list)
    killed: bool = False
    deaf: bool = False
    pid: int = 4711

    def news(self, seconds: float) -> list[News]:
        # Time goes faster here than the supervisor looks.
        self.clock.advance(seconds=10 * seconds)
        return [self.script.pop(0)] if self.script and self._may_go_on() else []

    def last_news(self) -> list[News]:
        left, self.script = self.script, []
        return left

    def order(self, order: Order) -> None:
        self.orders.append(order)
        if order == "stop" and not self.deaf:
            self.script = [Ended(caught_up=False)]

    def find_exit(self) -> str | None:
        ended = self.killed or (not self.script and not self.lingers)
        return self.exit if ended else None

    def kill(self) -> None:
        self.killed = True

    def _may_go_on(self) -> bool:
        """A query reads nothing before it is told to; it can start and stop, though."""
        return isinstance(self.script[0], Running | Failed) or bool(self.orders)


class Published(Publisher):
    """Remembers what it was to publish."""

    def __init__(self) -> None:
        super().__init__({}, lambda _: None)
        self.offered: list[Mapping[str, str | None]] = []

    def offer(self, positions: Mapping[str, str | None]) -> None:
        self.offered.append(positions)


@dataclass
class Pending:
    """A savepoint whose copy takes as long as its keeper says."""

    to: str
    keeper: Keeper

    def __call__(self, is_abandoned: Callable[[], bool]) -> dict[str, Any]:
        eventually(lambda: self.keeper.may_copy.is_set() or is_abandoned(), every=0.001)
        if is_abandoned():
            raise HeadgateError("SAVEPOINT_NOT_TAKEN", "the job was canceled meanwhile")
        if self.keeper.fails:
            raise HeadgateError("CHECKPOINT_EXISTS", "cannot take it: it is there", hint="rm it")
        return {"savepoint": "sp-1", "folder": self.to, "batch": 1, "bytes": 2}


@dataclass
class Keeper:
    """Keeps nothing, and remembers what it was asked for."""

    newest: str | None = None
    kept: Checkpoint | None = None
    asked: list[str] = field(default_factory=list)
    fails: bool = False
    starts: dict[str, str | None] = field(default_factory=dict)
    may_copy: threading.Event = field(default_factory=threading.Event)
    # Checkpoints are due, and are kept once this is set; None if none is due.
    may_keep: threading.Event | None = None
    is_due: Callable[[], bool] = lambda: True
    unkept: int | None = None
    positions: dict[str, str | None] = field(default_factory=dict)

    def find_starts(self) -> dict[str, str | None]:
        return self.starts

    def batch_committed(self, report: BatchReport) -> None:
        self.asked.append(f"batch {report.batch}")
        self.unkept = report.batch

    def take_due(self) -> Callable[[], dict[str, Any]] | None:
        batch = self.unkept
        if self.may_keep is None or batch is None or not self.is_due():
            return None
        self.unkept = None
        return lambda: self._keep(batch)

    def _keep(self, batch: int) -> dict[str, Any]:
        assert self.may_keep is not None
        assert self.may_keep.wait(60)
        if self.fails:
            raise OSError("the disk is full")
        self.newest = f"chk-{batch}"
        self.asked.append(f"kept {batch}")
        return {"checkpoint": self.newest}

    def keep_last(self) -> dict[str, Any] | None:
        self.asked.append("last")
        return None

    def begin_savepoint(self, to: str) -> Pending:
        self.asked.append(f"savepoint {to}")
        return Pending(to, self)

    def job_ended(self, *, canceled: bool) -> None:
        self.asked.append(f"ended {canceled}")


class Bench:
    """A supervisor, its children one after the other, and what came of it."""

    def __init__(self, folder: Path, *scripts: list[News], restart: str = "none") -> None:
        self.clock = FakeClock(NOW)
        self.home = JobFolder(folder, "orders")
        self.home.path.mkdir(parents=True)
        self.keeper = Keeper()
        self.keeper.may_copy.set()
        self.children: list[Child] = []
        self.noted_runs: list[int] = []
        self.dead_ends: list[str] = []
        # Whether every child had ended each time.
        self.cleaned: list[bool] = []
        # Of those that were published before the job had cleaned up.
        self.early_ends: list[str] = []
        self.on_clean_up: Callable[[], None] = lambda: None
        self.stop = threading.Event()
        self.watch: Callable[[JobSnapshot], None] = lambda _: None
        self.publisher = Published()
        self.spec: Callable[[int], AttemptSpec] = lambda _attempt: cast("AttemptSpec", None)
        # Whether children go on until they are let go or killed.
        self.patient = False
        self._scripts = list(scripts)
        self._restart = restart

    def launch(self, _spec: AttemptSpec) -> Child:
        script = self._scripts.pop(0)
        died = not any(isinstance(news, Ended | Failed) for news in script)
        child = Child(
            self.clock, list(script), exit="killed by signal 9" if died else "exit code 0"
        )
        child.lingers = self.patient
        self.children.append(child)
        return child

    def clean_up(self) -> None:
        self.on_clean_up()
        self.cleaned.append(all(child.find_exit() is not None for child in self.children))
        self._look_for_an_early_end()

    def dead_end(self) -> None:
        self.dead_ends.append(self.children[-1].exit)
        self._look_for_an_early_end()

    def _look_for_an_early_end(self) -> None:
        told = {self.status()["state"], *self.events()}
        self.early_ends += sorted(told & {state.value for state in JobState if state.is_final})

    def run(self) -> JobSnapshot:
        supervisor = Supervisor(
            self.home,
            Machine(job="orders", strategy=parse_strategy(self._restart)),
            self.spec,
            launcher=self,
            keeper=cast("CheckpointKeeper", self.keeper),
            meter=Meter(self.home, self.clock),
            watcher=Watcher(on_snapshot=lambda snapshot: self.watch(snapshot)),
            clock=self.clock,
            snapshot=JobSnapshot(
                "orders", JobState.STARTING, "L", None, False, timedelta(0), Totals(), Path()
            ),
            on_running=lambda: self.noted_runs.append(len(self.children[-1].orders)),
            after_intent=0,
            stop=self.stop,
            publisher=self.publisher,
            on_dead_end=self.dead_end,
        )
        return supervisor.run()

    # What a test waits for, and what it does then.

    def is_state(self, state: str) -> Callable[[], bool]:
        return lambda: self.status()["state"] == state

    def is_echoed(self, number: int) -> Callable[[], bool]:
        return lambda: self.status()["intent"] == number

    def is_refused(self, number: int, code: str) -> Callable[[], bool]:
        return lambda: (
            self.status()["intent"] == number
            and (self.status()["intent_error"] or {}).get("code") == code
        )

    def has_event(self, kind: str) -> Callable[[], bool]:
        return lambda: kind in self.events()

    def ask(self, verb: Verb, **arguments: Any) -> Callable[[], object]:
        return lambda: write_intent(self.home, verb, arguments, by="a test")

    def events(self) -> list[str]:
        lines = (self.home.path / "events.jsonl").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]

    def status(self) -> dict[str, Any]:
        found = self.home.find_json("status.json")
        assert found is not None
        return found


def failed(code: str = "QUERY_FAILED", *, retryable: bool = True) -> Failed:
    return Failed(
        Failure(
            NOW, code, "it failed", "Boom: x", "driver", retryable, hint="look", domain="internal"
        ),
        "Boom: x\n\tat Y\n",
    )


def test_a_child_is_opened_only_after_its_run_was_noted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), Ended(caught_up=True)])
    assert bench.run().state is JobState.FINISHED
    assert bench.noted_runs == [0], "noted before the first order"
    assert bench.children[0].orders == ["open"]
    assert bench.keeper.asked == ["last", "ended False"]


def test_a_job_that_found_nothing_to_read_publishes_where_it_begins(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), Ended(caught_up=True)])
    bench.keeper.starts = {"orders": "here"}
    bench.run()
    assert bench.publisher.offered == [{"orders": "here"}]


def test_a_failure_is_restarted_as_the_strategy_says_and_told_with_its_cause(
    tmp_path: Path,
) -> None:
    bench = Bench(
        tmp_path,
        [Running(), failed()],
        [Running()],
        [Running(), Ended(caught_up=True)],
        restart="fixed-delay:5,10s",
    )
    done = bench.run()
    assert (done.state, done.attempt) == (JobState.FINISHED, 3)
    assert bench.clock.seconds >= 20, "twice the wait of 10 seconds"
    assert bench.events().count("FAILURE") == 2
    assert bench.status()["last_failure"]["root_cause"] == "killed by signal 9"
    assert bench.cleaned == [True], "once, when no child is left"


def test_a_failure_is_noted_with_its_cause_and_the_next_step(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), failed()])
    with pytest.raises(HeadgateError):
        bench.run()
    (failure,) = FolderHome(tmp_path).exceptions("orders").failures
    assert (failure.attempt, failure.code, failure.root_cause) == (1, "QUERY_FAILED", "Boom: x")
    assert (failure.hint, failure.where) == ("look", "driver")
    assert failure.trace == "Boom: x\n\tat Y\n"
    assert bench.cleaned == [True]


def batch(number: int) -> Batch:
    return Batch(
        BatchReport(
            batch=number,
            started=NOW,
            duration=timedelta(seconds=1),
            sources={"in": SourceProgress(5, None, None, None, "{}")},
            outputs={"out": 5},
            state={},
            phases={},
        )
    )


def test_what_batches_did_is_sampled_and_so_is_the_last_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), batch(1), batch(2), Ended(caught_up=True)])
    bench.run()
    lines = (bench.home.path / "samples.jsonl").read_text().splitlines()
    assert sum(json.loads(line).get("i", {}).get("in", 0) for line in lines) == 10


def test_what_waiting_cannot_mend_is_not_retried(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [failed("SCHEMA_CHANGED", retryable=False)], restart="fixed-delay:5,1s")
    with pytest.raises(HeadgateError) as told:
        bench.run()
    assert told.value.code == "SCHEMA_CHANGED"
    assert len(bench.children) == 1
    assert bench.status()["state"] == "FAILED"


def test_an_attempt_that_must_not_be_launched_fails_the_job_and_is_not_retried(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [Running(), failed()], restart="fixed-delay:5,1s")

    def spec(attempt: int) -> AttemptSpec:
        if attempt > 1:
            raise HeadgateError("CHECKPOINT_DAMAGED", "it is gone", hint="restore it")
        return cast("AttemptSpec", None)

    bench.spec = spec
    with pytest.raises(HeadgateError) as told:
        bench.run()
    assert (told.value.code, told.value.hint) == ("CHECKPOINT_DAMAGED", "restore it")
    assert (len(bench.children), bench.status()["state"]) == (1, "FAILED")
    assert bench.status()["last_failure"]["code"] == "CHECKPOINT_DAMAGED"
    assert bench.keeper.asked == ["ended False"]
    assert bench.events().count("FAILURE") == 2


def test_a_child_that_hangs_after_its_last_word_is_killed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), Ended(caught_up=True)])
    bench.patient = True
    assert bench.run().state is JobState.FINISHED
    assert bench.children[0].killed
    assert bench.clock.seconds > 30


def test_an_event_ends_the_job_between_two_batches(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.patient = True

    def watch(snapshot: JobSnapshot) -> None:
        if snapshot.state is JobState.RUNNING:
            bench.stop.set()
        if "stop" in bench.children[-1].orders:
            bench.children[-1].lingers = False

    bench.watch = watch
    assert bench.run().state is JobState.STOPPED
    assert bench.children[0].orders == ["open", "stop"]


def test_a_savepoint_that_cannot_be_taken_at_a_stop_is_told_and_the_job_has_stopped(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.keeper.fails = True
    bench.patient = True
    asked = False

    def watch(snapshot: JobSnapshot) -> None:
        nonlocal asked
        if snapshot.state is JobState.RUNNING and not asked:
            asked = True
            write_intent(bench.home, Verb.STOP, {"savepoint": "/x"}, by="a test")
        if "stop" in bench.children[-1].orders:
            bench.children[-1].lingers = False

    bench.watch = watch
    assert bench.run().state is JobState.STOPPED
    assert "savepoint /x" in bench.keeper.asked
    status = bench.status()
    assert (status["intent"], status["intent_error"]["code"]) == (1, "CHECKPOINT_EXISTS")
    assert "SAVEPOINT_FAILED" in bench.events()


def test_what_happens_to_a_topic_is_an_event_of_the_job(tmp_path: Path) -> None:
    grew = SourceEvent("TOPIC_GREW", "orders", "topic 'orders' has 4 partitions now, and had 2")
    bench = Bench(tmp_path, [Running(), grew, Ended(caught_up=True)])
    assert bench.run().state is JobState.FINISHED
    assert "TOPIC_GREW" in bench.events()


def test_only_a_job_that_ended_in_the_middle_leaves_something_to_clear_up(tmp_path: Path) -> None:
    clean = Bench(tmp_path / "clean", [Running(), Ended(caught_up=True)])
    clean.run()
    assert clean.dead_ends == []
    dead = Bench(tmp_path / "dead", [Running(), failed(retryable=False)])
    with pytest.raises(HeadgateError):
        dead.run()
    assert dead.dead_ends == ["exit code 0"]


@pytest.mark.parametrize("end", ["FINISHED", "CANCELED", "FAILED"])
def test_a_final_state_is_published_once_nothing_of_the_job_runs(tmp_path: Path, end: str) -> None:
    scripts: dict[str, list[News]] = {
        "FINISHED": [Running(), Ended(caught_up=True)],
        "CANCELED": [Running()],
        "FAILED": [Running(), failed(retryable=False)],
    }
    bench = Bench(tmp_path, scripts[end])
    bench.patient = end == "CANCELED"

    def watch(snapshot: JobSnapshot) -> None:
        if end == "CANCELED" and snapshot.state is JobState.STARTING:
            write_intent(bench.home, Verb.CANCEL, by="a test")

    bench.watch = watch
    with contextlib.suppress(HeadgateError):
        bench.run()
    assert bench.cleaned == [True]
    assert bench.early_ends == []
    assert (bench.status()["state"], bench.events()[-1]) == (end, end)


def test_a_job_that_was_replaced_leaves_what_is_open_to_its_successor(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), failed("FENCED", retryable=False)])
    with pytest.raises(HeadgateError):
        bench.run()
    assert bench.dead_ends == []


# Requests, and what comes together with them


class Script:
    """Does one thing after the other to a job: each once its condition holds."""

    def __init__(self, bench: Bench, *steps: tuple[Callable[[], bool], Callable[[], object]]):
        self._bench = bench
        self._steps = list(steps)
        bench.patient = True
        bench.watch = self._look

    def _look(self, _snapshot: JobSnapshot) -> None:
        child = self._bench.children[-1] if self._bench.children else None
        if child is not None and "stop" in child.orders:
            child.lingers = False
        if self._steps and self._steps[0][0]():
            self._steps.pop(0)[1]()

    @property
    def is_done(self) -> bool:
        return not self._steps


def interrupt(times: int = 1) -> None:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_cancel_request_together_with_a_signal_cancels(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])

    def both() -> None:
        write_intent(bench.home, Verb.CANCEL, by="a test")
        os.kill(os.getpid(), signal.SIGTERM)

    script = Script(bench, (bench.is_state("RUNNING"), both))
    assert bench.run().state is JobState.CANCELED
    assert script.is_done
    assert bench.status()["intent_error"] is None


def test_five_signals_cancel_the_job_and_none_of_them_ends_the_process(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.on_clean_up = interrupt
    Script(bench, (bench.is_state("RUNNING"), lambda: interrupt(5)))
    assert bench.run().state is JobState.CANCELED
    assert bench.events()[-3:] == ["STOPPING", "CANCELING", "CANCELED"]


def test_a_signal_to_a_job_that_is_failing_stops_it_and_clears_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()], restart="fixed-delay:5,10s")

    def fail() -> None:
        interrupt()
        bench.children[-1].deaf = True
        bench.children[-1].script = [failed()]
        bench.children[-1].lingers = False

    Script(bench, (bench.is_state("RUNNING"), fail))
    assert bench.run().state is JobState.STOPPED
    assert "QUERY_FAILED" in bench.status()["reason"]
    assert bench.dead_ends, "its batch may be open"


def test_requests_are_answered_while_a_savepoint_is_copied(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.keeper.may_copy.clear()
    Script(
        bench,
        (bench.is_state("RUNNING"), bench.ask(Verb.SAVEPOINT, to="/x")),
        (bench.is_echoed(1), bench.ask(Verb.SAVEPOINT, to="/y")),
        (bench.is_refused(2, "JOB_BUSY"), bench.ask(Verb.PAUSE)),
        (bench.is_state("PAUSED"), bench.keeper.may_copy.set),
        (bench.has_event("SAVEPOINT"), bench.ask(Verb.STOP)),
    )
    assert bench.run().state is JobState.STOPPED
    assert bench.keeper.asked == ["savepoint /x", "last", "ended False"]


def test_a_running_job_without_batches_reports_a_rate_of_zero(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), batch(1)])
    script = Script(
        bench,
        (lambda: bench.status()["records_per_s"] == 5, lambda: None),
        (lambda: bench.status()["records_per_s"] == 0, bench.ask(Verb.STOP)),
    )
    bench.watch = _with_deadline(bench, bench.watch, seconds=60)
    assert bench.run().state is JobState.STOPPED
    assert script.is_done


def _with_deadline(
    bench: Bench, watch: Callable[[JobSnapshot], None], *, seconds: float
) -> Callable[[JobSnapshot], None]:
    """Return a watcher that stops the job at the latest after some seconds of its clock."""

    def look(snapshot: JobSnapshot) -> None:
        watch(snapshot)
        if bench.clock.seconds >= seconds:
            bench.stop.set()
            bench.children[-1].lingers = False

    return look


def test_requests_are_answered_while_a_checkpoint_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), batch(1), batch(2)])
    bench.keeper.may_keep = threading.Event()
    Script(
        bench,
        (lambda: "batch 2" in bench.keeper.asked, bench.ask(Verb.PAUSE)),
        (bench.is_state("PAUSED"), bench.keeper.may_keep.set),
        (lambda: bench.events().count("CHECKPOINT") == 2, bench.ask(Verb.STOP)),
    )
    assert bench.run().state is JobState.STOPPED
    assert bench.keeper.asked[-4:] == ["kept 1", "kept 2", "last", "ended False"]


def test_the_last_batch_is_kept_once_a_checkpoint_is_due_without_a_further_batch(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [Running(), batch(1)])
    bench.keeper.may_keep = threading.Event()
    bench.keeper.may_keep.set()
    bench.keeper.is_due = lambda: bench.clock.seconds >= 60
    Script(
        bench,
        (
            lambda: bench.has_event("CHECKPOINT")() or bench.clock.seconds > 600,
            bench.ask(Verb.STOP),
        ),
    )
    assert bench.run().state is JobState.STOPPED
    assert bench.keeper.asked == ["batch 1", "kept 1", "last", "ended False"]


@pytest.mark.parametrize("dies", [False, True])
def test_the_end_of_an_attempt_waits_for_its_checkpoints(tmp_path: Path, dies: bool) -> None:
    bench = Bench(tmp_path, [Running(), batch(1)], restart="none")
    bench.keeper.may_keep = threading.Event()

    def end() -> None:
        if dies:
            bench.children[0].lingers = False
        else:
            write_intent(bench.home, Verb.STOP, by="a test")

    Script(
        bench,
        (lambda: "batch 1" in bench.keeper.asked, end),
        (lambda: bench.status()["child"] is None, bench.keeper.may_keep.set),
    )
    with contextlib.suppress(HeadgateError):
        bench.run()
    end_of_job = ["CHECKPOINT", "FAILURE", "FAILED"] if dies else ["CHECKPOINT", "STOPPED"]
    assert bench.events()[-len(end_of_job) :] == end_of_job
    assert bench.status()["checkpoint"] == "chk-1"


def test_a_checkpoint_that_cannot_be_kept_is_reported_and_the_job_goes_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running(), batch(1), Ended(caught_up=True)])
    bench.keeper.may_keep = threading.Event()
    bench.keeper.may_keep.set()
    bench.keeper.fails = True
    assert bench.run().state is JobState.FINISHED
    assert "CHECKPOINT_FAILED" in bench.events()


def test_a_cancel_during_a_savepoint_gives_it_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.keeper.may_copy.clear()
    Script(
        bench,
        (bench.is_state("RUNNING"), bench.ask(Verb.SAVEPOINT, to="/x")),
        (bench.is_echoed(1), bench.ask(Verb.CANCEL)),
    )
    assert bench.run().state is JobState.CANCELED
    assert "SAVEPOINT_FAILED" in bench.events()
    assert bench.keeper.asked == ["savepoint /x", "ended True"]


def test_a_signal_during_a_savepoint_stops_the_job_and_the_savepoint_is_taken(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.keeper.may_copy.clear()
    Script(
        bench,
        (bench.is_state("RUNNING"), bench.ask(Verb.SAVEPOINT, to="/x")),
        (bench.is_echoed(1), interrupt),
        (lambda: "last" in bench.keeper.asked, bench.keeper.may_copy.set),
    )
    assert bench.run().state is JobState.STOPPED
    assert bench.events()[-2:] == ["SAVEPOINT", "STOPPED"]


def test_an_attempt_that_dies_during_a_savepoint_is_restarted_and_the_savepoint_is_taken(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, [Running()], [Running()], restart="fixed-delay:5,10s")
    bench.keeper.may_copy.clear()

    def die() -> None:
        bench.children[0].lingers = False

    Script(
        bench,
        (bench.is_state("RUNNING"), bench.ask(Verb.SAVEPOINT, to="/x")),
        (bench.is_echoed(1), die),
        (lambda: len(bench.children) == 2, bench.keeper.may_copy.set),
        (bench.has_event("SAVEPOINT"), bench.ask(Verb.STOP)),
    )
    assert bench.run().state is JobState.STOPPED
    assert bench.status()["attempt"] == 2


def test_a_job_that_fails_for_good_during_a_savepoint_still_takes_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.keeper.may_copy.clear()

    def die() -> None:
        bench.children[0].lingers = False

    Script(
        bench,
        (bench.is_state("RUNNING"), bench.ask(Verb.SAVEPOINT, to="/x")),
        (bench.is_echoed(1), die),
        (bench.is_state("STOPPING"), bench.keeper.may_copy.set),
    )
    with pytest.raises(HeadgateError) as told:
        bench.run()
    assert told.value.code == "DRIVER_DIED"
    assert bench.events()[-2:] == ["SAVEPOINT", "FAILED"]


def test_a_supervisor_that_breaks_leaves_no_copy_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [Running()])
    bench.keeper.may_copy.clear()

    def breaks() -> None:
        raise RuntimeError("out of paper")

    Script(
        bench,
        (bench.is_state("RUNNING"), bench.ask(Verb.SAVEPOINT, to="/x")),
        (bench.is_echoed(1), breaks),
    )
    with pytest.raises(RuntimeError):
        bench.run()
    assert not [each for each in threading.enumerate() if each.name.startswith("savepoint")]
    assert bench.children[0].killed
