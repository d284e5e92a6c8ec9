"""The supervisor: performs what the machine decides, and tells what the job is doing.

It alone launches attempts, and it alone writes status.json, events.jsonl and samples. It runs
until the job is in a final state; it holds the job's lock all the while.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from headgate._clock import Clock
from headgate._codec import encode
from headgate.engine.progress import BatchReport
from headgate.errors import HeadgateError
from headgate.jobs.attempts.launch import Child, Launcher
from headgate.jobs.attempts.wire import (
    AttemptSpec,
    Batch,
    Ended,
    Failed,
    Loading,
    News,
    RowShown,
    Running,
    SourceEvent,
)
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_echo, find_intent
from headgate.jobs.lifecycle.machine import Machine, step
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import (
    AbandonSavepoint,
    Action,
    AttemptEnded,
    AttemptFailed,
    AttemptRunning,
    Event,
    Finish,
    HostStopWanted,
    Interrupted,
    KillAttempt,
    LaunchAttempt,
    OrderDrain,
    OrderHold,
    OrderOpen,
    OrderStop,
    RestartDue,
    SavepointEnded,
    ScheduleRestart,
    Submitted,
    TakeSavepoint,
)
from headgate.jobs.runs.publishing import Publisher
from headgate.jobs.supervision.failures import (
    died,
    not_taken,
    refused,
    to_error,
    to_event,
    to_failure,
)
from headgate.jobs.supervision.long_work import LongWork
from headgate.jobs.supervision.requests import to_request
from headgate.jobs.supervision.sampler import Sampler
from headgate.jobs.supervision.signals import StopSignals
from headgate.jobs.totals import Totals
from headgate.jobs.values import JobSnapshot, Watcher

_LISTEN = 0.1
# Nobody reads the status more often than a person or a poll does.
_STATUS_EVERY = 0.25
# How long an attempt may take to end after it has said how it ended.
_LAST_WORD = 30.0
_ORDERS = {OrderStop: "stop", OrderDrain: "drain", OrderHold: "hold", OrderOpen: "open"}


class Supervisor:
    """Runs one job to a final state.

    Args:
        spec: Makes the spec of an attempt, by its number; raises what forbids the attempt.
        keeper: Keeps checkpoints and takes savepoints.
        on_running: Called each time an attempt has started its query, before its first batch.
        after_intent: Intents up to this number were not for this start.
        stop: Ends the job before its next batch once it is set.
        publisher: Is offered the positions of each checkpoint; closed when the job has ended.
        on_dead_end: Called when the job has ended in the middle of a batch, for good.
    """

    def __init__(
        self,
        home: JobFolder,
        machine: Machine,
        spec: Callable[[int], AttemptSpec],
        *,
        launcher: Launcher,
        keeper: CheckpointKeeper,
        watcher: Watcher,
        clock: Clock,
        snapshot: JobSnapshot,
        on_running: Callable[[], None],
        after_intent: int,
        stop: threading.Event,
        publisher: Publisher,
        on_dead_end: Callable[[], None],
    ) -> None:
        self._home = home
        self._machine = machine
        self._spec = spec
        self._launcher = launcher
        self._keeper = keeper
        self._watcher = watcher
        self._clock = clock
        self._snapshot = snapshot
        self._on_running = on_running
        self._publisher = publisher
        self._on_dead_end = on_dead_end
        self._began = clock.monotonic()
        self._totals = Totals()
        self._sampler = Sampler(home, clock)
        self._loading = False
        self._child: Child | None = None
        self._last: Ended | Failed | None = None
        self._failure: HeadgateError | None = None
        # Whether the last attempt ended in the middle of a batch, as far as is known.
        self._cut_off = False
        self._savepoint: LongWork[Mapping[str, Any]] | None = None
        self._savepoint_intent = 0
        self._due: float | None = None
        self._followed = max(find_echo(home), after_intent)
        self._stop = stop
        self._stop_noticed = False
        self._last_at = 0.0
        self._intent_error: dict[str, str] | None = None
        self._written = 0.0

    def run(self) -> JobSnapshot:
        """Run until the job is in a final state, and return what it was then.

        Raises:
            HeadgateError: The last failure, if the job FAILED.
        """
        # Signals are counted until the last status is written: one that comes while the job cleans
        # up must not end the process.
        with StopSignals() as signals:
            try:
                self._run(signals)
            finally:
                self._clean_up()
            try:
                if self._is_dead_end():
                    self._on_dead_end()
            finally:
                self._publish_end()
        if self._machine.state is JobState.FAILED and self._failure is not None:
            raise self._failure
        return self.snapshot()

    def _run(self, signals: StopSignals) -> None:
        self._apply(Submitted(self._clock.now()))
        while not self._machine.state.is_final or self._child is not None:
            self._listen()
            self._notice_child()
            self._notice_timer()
            self._notice_savepoint()
            self._notice_intent()
            self._notice_stop(signals)
            self._sampler.tick(self._machine.state)
            self._tell()

    def _clean_up(self) -> None:
        """End all that belongs to the job: no driver and no copy may outlive the lock."""
        if self._child is not None:
            self._child.kill()
        if self._savepoint is not None:
            self._savepoint.abandon()
            self._savepoint.join()
        self._launcher.clean_up()
        self._publisher.close()
        self._sampler.flush()

    def _is_dead_end(self) -> bool:
        """Tell whether the job ended for good, perhaps in the middle of a batch.

        What is open belongs to another attempt where that one has taken over.
        """
        replaced = self._failure is not None and self._failure.code == "FENCED"
        state = self._machine.state
        cut = state in (JobState.FAILED, JobState.CANCELED) or (
            state is JobState.STOPPED and self._cut_off
        )
        return cut and not replaced

    def _publish_end(self) -> None:
        """Publish the final state, the last thing a supervisor does before it releases the lock.

        Readers take a final state to mean that nothing of the job runs any more.
        """
        self._note_state()
        self._write_status()

    def snapshot(self) -> JobSnapshot:
        """Return what the job is and has done."""
        return replace(
            self._snapshot,
            state=self._machine.state,
            attempt=max(1, self._machine.attempt),
            reason=self._machine.reason,
            loading=self._loading,
            elapsed=timedelta(seconds=self._clock.monotonic() - self._began),
            totals=self._totals,
            checkpoint=self._keeper.newest,
        )

    # What happens.

    def _listen(self) -> None:
        if self._child is None:
            self._clock.sleep(timedelta(seconds=_LISTEN))
            return
        for news in self._child.news(_LISTEN):
            self._take(news)

    def _take(self, news: News) -> None:
        match news:
            case Running():
                # Held until now: the job must be known by this run before it writes anything.
                self._on_running()
                self._apply(AttemptRunning(self._clock.now()))
                if self._child is not None and not self._machine.held:
                    self._child.order("open")
            case Loading(loading):
                self._loading = loading
            case Batch(report):
                self._totals = self._totals.plus(report)
                self._sampler.batch_committed(report)
                self._keep(report)
            case RowShown(output, row):
                self._watcher.on_row(output, row)
            case SourceEvent(kind, source, message):
                self._note(kind, source=source, message=message)
                self._watcher.on_notice(f"source {source!r}: {message}")
            case Ended() | Failed():
                self._last = news
                self._last_at = self._clock.monotonic()

    def _notice_child(self) -> None:
        """Turn the end of the child into an event, once all it told has been taken."""
        child = self._child
        if child is None:
            return
        exit_ = child.find_exit()
        if exit_ is None:
            if self._last is not None and self._clock.monotonic() - self._last_at > _LAST_WORD:
                # Ending Spark hangs; the attempt has said how it ended.
                child.kill()
            return
        for news in child.last_news():
            self._take(news)
        # Its JVM may outlive a child that was killed.
        child.kill()
        self._child = None
        last, self._last = self._last, None
        self._loading = False
        now = self._clock.now()
        if isinstance(last, Ended):
            self._keep_last()
            # A job that found nothing to read has a place too, at which its topics are held.
            if starts := self._keeper.find_starts():
                self._publisher.offer(starts)
            self._apply(AttemptEnded(now, last.caught_up))
            return
        self._fail(last if last is not None else died(self._home.name, exit_))

    def _fail(self, failed: Failed) -> None:
        now = self._clock.now()
        self._failure = to_error(failed)
        self._cut_off = True
        if self._machine.state is not JobState.CANCELLING:
            self._note("FAILURE", attempt=self._machine.attempt, **to_event(failed))
        self._apply(AttemptFailed(now, to_failure(failed, at=now)))

    def _keep(self, report: BatchReport) -> None:
        """Keep a batch if one is due; a job goes on without a checkpoint, and says so."""
        try:
            kept = self._keeper.batch_committed(report)
        except (HeadgateError, OSError) as error:
            self._note_unkept(error)
            return
        self._tell_kept(kept)

    def _tell_kept(self, kept: Mapping[str, Any] | None) -> None:
        if kept is not None:
            self._note("CHECKPOINT", **kept, run=self._snapshot.lineage)
            self._publisher.offer(self._keeper.positions)

    def _note_unkept(self, error: HeadgateError | OSError) -> None:
        self._note("CHECKPOINT_FAILED", **not_taken(error, job=self._home.name).as_dict())

    def _keep_last(self) -> None:
        """Keep what a clean end left, so that going on from there repeats nothing."""
        try:
            kept = self._keeper.keep_last()
        except (HeadgateError, OSError) as error:
            self._note_unkept(error)
            return
        self._tell_kept(kept)

    def _notice_timer(self) -> None:
        if self._due is not None and self._clock.monotonic() >= self._due:
            self._due = None
            self._apply(RestartDue(self._clock.now()))

    def _notice_intent(self) -> None:
        try:
            intent = find_intent(self._home)
        except HeadgateError as error:
            # An intent that cannot be read is nobody's reason to end a job that works.
            self._intent_error = error.as_dict()
            return
        if intent is None or intent.number <= self._followed:
            return
        self._note("INTENT", number=intent.number, verb=intent.verb.value, by=intent.by)
        self._followed = intent.number
        self._intent_error = None
        try:
            self._apply(to_request(intent, at=self._clock.now()))
        except HeadgateError as error:
            self._intent_error = error.as_dict()
        self._tell(at_once=True)

    def _notice_stop(self, signals: StopSignals) -> None:
        while signals.take():
            self._apply(Interrupted(self._clock.now()))
        if self._stop.is_set() and not self._stop_noticed:
            self._stop_noticed = True
            self._apply(HostStopWanted(self._clock.now()))

    def _notice_savepoint(self) -> None:
        """Turn the end of a savepoint into an event, once its thread has ended."""
        work = self._savepoint
        if work is None or not work.is_over:
            return
        self._savepoint = None
        self._keeper.savepoint_ended()
        try:
            self._note("SAVEPOINT", **work.get(), run=self._snapshot.lineage)
        except Exception as error:  # noqa: BLE001 - a job goes on without a savepoint, and says so
            self._note_unsaved(error)
        self._apply(SavepointEnded(self._clock.now()))

    # What is done.

    def _apply(self, event: Event) -> None:
        before = self._machine.state
        self._machine, actions = step(self._machine, event)
        moved = self._machine.state is not before or isinstance(event, Submitted)
        if moved and not self._machine.state.is_final:
            self._note_state()
        for action in actions:
            self._perform(action)
        self._tell(at_once=True)

    def _perform(self, action: Action) -> None:
        match action:
            case LaunchAttempt(attempt):
                self._last = None
                self._cut_off = False
                self._launch(attempt)
            case ScheduleRestart(after):
                self._due = self._clock.monotonic() + after.total_seconds()
            case KillAttempt():
                if self._child is not None:
                    self._child.kill()
            case TakeSavepoint(to, intent):
                self._begin_savepoint(to, intent)
            case AbandonSavepoint():
                if self._savepoint is not None:
                    self._savepoint.abandon()
            case Finish():
                self._due = None
                self._keeper.job_ended(canceled=self._machine.state is JobState.CANCELED)
            case OrderStop() | OrderDrain() | OrderHold() | OrderOpen():
                if self._child is not None:
                    self._child.order(_ORDERS[type(action)])

    def _launch(self, attempt: int) -> None:
        """Launch an attempt; one that must not be is a failure like any other."""
        try:
            spec = self._spec(attempt)
        except HeadgateError as error:
            self._fail(refused(error))
            return
        self._child = self._launcher.launch(spec)

    def _begin_savepoint(self, to: str, intent: int) -> None:
        """Begin a savepoint; one that cannot begin has ended."""
        self._savepoint_intent = intent
        try:
            pending = self._keeper.begin_savepoint(to)
        except (HeadgateError, OSError) as error:
            self._note_unsaved(error)
            self._apply(SavepointEnded(self._clock.now()))
            return
        self._savepoint = LongWork("savepoint", pending.copy)

    def _note_unsaved(self, error: Exception) -> None:
        told = not_taken(error, job=self._home.name)
        if self._followed == self._savepoint_intent:
            self._intent_error = told.as_dict()
        self._note("SAVEPOINT_FAILED", **told.as_dict())

    # What is told.

    def _note_state(self) -> None:
        machine = self._machine
        reason = {"reason": machine.reason} if machine.reason else {}
        self._note(machine.state.value, attempt=machine.attempt, **reason)

    def _note(self, kind: str, **facts: Any) -> None:
        # A full disk is no reason to end a job that can still write elsewhere.
        with contextlib.suppress(OSError):
            self._home.add_event(self._clock.now(), kind, **facts)

    def _tell(self, *, at_once: bool = False) -> None:
        """Write the status if it is due; the final state waits for `_publish_end`."""
        due = at_once or self._clock.monotonic() - self._written >= _STATUS_EVERY
        if due and not self._machine.state.is_final:
            self._write_status()

    def _write_status(self) -> None:
        self._written = self._clock.monotonic()
        snapshot = self.snapshot()
        status = {
            **encode(snapshot),
            **self._machine.to_json(),
            "pid": os.getpid(),
            "child": None if self._child is None else self._child.pid,
            "intent": self._followed,
            "intent_error": self._intent_error,
            "at": self._clock.now().isoformat(),
        }
        # The next one comes soon, and tells all that this one does.
        with contextlib.suppress(OSError):
            self._home.write_status(status)
        self._watcher.on_snapshot(snapshot)
