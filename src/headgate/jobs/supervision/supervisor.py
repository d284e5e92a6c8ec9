"""The supervisor: performs the machine's actions, and reports the job's state.

It alone launches attempts, and it alone writes status.json, events.jsonl and samples. It runs
until the job is in a final state, and holds the job's lock meanwhile. Checkpoints are linked and
savepoints are copied on threads of their own, so that the supervisor keeps answering.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from headgate._clock import Clock
from headgate._codec import encode
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.engine.attempt.progress import BatchReport
from headgate.errors import Domain, HeadgateError
from headgate.jobs.attempts.launch import Child, Launcher
from headgate.jobs.attempts.wire import (
    AttemptSpec,
    Batch,
    Ended,
    Failed,
    Loading,
    Measured,
    News,
    RowShown,
    Running,
    SourceEvent,
)
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.failures import Failure, format_trace, to_failure
from headgate.jobs.lifecycle.intent import Intent, find_echo, find_intent
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
    Order,
    OrderAttempt,
    RestartDue,
    SavepointEnded,
    ScheduleRestart,
    Submitted,
    TakeSavepoint,
    Verb,
    Wanted,
)
from headgate.jobs.runs.publishing import Publisher
from headgate.jobs.supervision.meter import Meter
from headgate.jobs.supervision.sampler import Sampler
from headgate.jobs.supervision.signals import StopSignals
from headgate.jobs.supervision.state_sizes import StateSizes
from headgate.jobs.supervision.trace_file import add_trace
from headgate.jobs.totals import Totals
from headgate.jobs.values import JobSnapshot, Watcher

_LISTEN = 0.1
_STATUS_EVERY = 0.25
# How long an attempt may take to exit after its last news.
_LAST_WORD = 30.0
# A checkpoint that is due is put off while so many others wait: Spark removes the files of a batch
# after 100 later ones.
_MOST_WAITING = 8
# Failures of an attempt, or of a start, beside which another one runs.
_REPLACED = frozenset({"FENCED", "LEASE_HELD", "LEASE_LOST"})


class Supervisor:
    """Runs one job to a final state.

    Args:
        spec: Makes the spec of an attempt, by its number; raises what forbids the attempt.
        keeper: Keeps checkpoints and takes savepoints.
        meter: Counts what the job does.
        on_running: Called each time an attempt has started its query, before its first batch.
        after_intent: Intents up to this number were not for this start.
        stop: Ends the job before its next batch once it is set.
        publisher: Is offered the positions of each checkpoint; closed when the job has ended.
        on_dead_end: Called when the job has ended in the middle of a batch, for good.
        find_loss: Returns why this process must end the job's driver, if it must.
    """

    def __init__(
        self,
        home: JobFolder,
        machine: Machine,
        spec: Callable[[int], AttemptSpec],
        *,
        launcher: Launcher,
        keeper: CheckpointKeeper,
        meter: Meter,
        watcher: Watcher,
        clock: Clock,
        snapshot: JobSnapshot,
        on_running: Callable[[], None],
        after_intent: int,
        stop: threading.Event,
        publisher: Publisher,
        on_dead_end: Callable[[], None],
        find_loss: Callable[[], HeadgateError | None] = lambda: None,
    ) -> None:
        self._home = home
        self._machine = machine
        self._spec = spec
        self._launcher = launcher
        self._keeper = keeper
        self._meter = meter
        self._watcher = watcher
        self._clock = clock
        self._snapshot = snapshot
        self._on_running = on_running
        self._publisher = publisher
        self._on_dead_end = on_dead_end
        self._find_loss = find_loss
        self._began = clock.monotonic()
        self._totals = Totals()
        self._sampler = Sampler(home, clock)
        self._state_sizes = StateSizes(home)
        self._loading = False
        self._child: Child | None = None
        self._last: Ended | Failed | None = None
        self._failure: HeadgateError | None = None
        # Whether the last attempt ended in the middle of a batch, as far as is known.
        self._cut_off = False
        # How the last attempt's process ended, until that is an event.
        self._exit: str | None = None
        self._linker = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._checkpoints: deque[Future[Mapping[str, Any] | None]] = deque()
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="savepoint")
        self._savepoint: Future[Mapping[str, Any]] | None = None
        self._savepoint_intent = 0
        self._abandoned = threading.Event()
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
        # Until the last status is written: a signal during the clean-up must not end the process.
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
            # A job without new records has a checkpoint that is due, too.
            self._keep_due()
            self._notice_loss()
            self._notice_exit()
            self._notice_checkpoints()
            self._notice_end()
            self._notice_timer()
            self._notice_savepoint()
            self._notice_intent()
            self._notice_stop(signals)
            self._sampler.tick(self._machine.state)
            self._meter.tick()
            self._tell()

    def _clean_up(self) -> None:
        """End all that belongs to the job: no driver and no copy may outlive the lock."""
        if self._child is not None:
            self._child.kill()
        self._abandoned.set()
        for threads in (self._linker, self._copier):
            threads.shutdown()
        self._launcher.clean_up()
        self._publisher.close()
        self._sampler.flush()
        self._meter.flush()

    def _is_dead_end(self) -> bool:
        """Tell whether the job ended for good, perhaps in the middle of a batch.

        What is open belongs to another attempt where that one has taken over.
        """
        replaced = self._failure is not None and self._failure.code in _REPLACED
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
            totals=self._totals.as_of(self._clock.now()),
            checkpoint=self._keeper.newest,
        )

    # Events.

    def _listen(self) -> None:
        if self._child is not None:
            for news in self._child.news(_LISTEN):
                self._take(news)
        elif self._checkpoints:
            wait(self._checkpoints, timeout=_LISTEN)
        else:
            self._clock.sleep(timedelta(seconds=_LISTEN))

    def _take(self, news: News) -> None:
        match news:
            case Running():
                # Held until now: the job must be known by this run before it writes anything.
                try:
                    self._on_running()
                except HeadgateError as error:
                    self._give_up(error)
                    return
                self._apply(AttemptRunning(self._clock.now()))
                if self._child is not None and not self._machine.held:
                    self._child.order(Order.OPEN)
            case Loading(loading):
                self._loading = loading
            case Batch(spark_report):
                report = self._state_sizes.sized(spark_report)
                self._totals = self._totals.plus(report)
                self._sampler.batch_committed(report)
                self._meter.batch_committed(report)
                self._batch_committed(report)
            case Measured(vitals, executors):
                self._meter.measured(vitals, executors)
            case RowShown(output, row):
                self._watcher.on_row(output, row)
            case SourceEvent(kind, source, message):
                self._note(kind, **({"source": source} if source else {}), message=message)
                what = f"source {source!r}" if source else "executors"
                self._watcher.on_notice(f"{what}: {message}")
            case Ended() | Failed():
                self._last = news
                self._last_at = self._clock.monotonic()

    def _notice_loss(self) -> None:
        """End an attempt at once if another process has taken the job over."""
        loss = self._find_loss()
        if loss is not None and self._child is not None:
            self._give_up(loss)

    def _give_up(self, error: HeadgateError) -> None:
        """End an attempt that must not go on, which is a failure like any other."""
        if self._child is not None:
            self._child.kill()
            self._child = None
        self._last = None
        self._loading = False
        self._fail(to_failure(error, at=self._clock.now(), where="supervisor"))

    def _notice_exit(self) -> None:
        """Take the last news of a child that has ended, and keep its last checkpoint."""
        child = self._child
        if child is None:
            return
        exit_ = child.find_exit()
        if exit_ is None:
            if self._last is not None and self._clock.monotonic() - self._last_at > _LAST_WORD:
                # Spark hangs at its end; the attempt has reported how it ended.
                child.kill()
            return
        for news in child.last_news():
            self._take(news)
        # Its JVM may outlive a child that was killed.
        child.kill()
        self._child = None
        self._exit = exit_
        self._loading = False
        if isinstance(self._last, Ended):
            # A start from here repeats nothing.
            self._checkpoints.append(self._linker.submit(self._keeper.keep_last))

    def _notice_end(self) -> None:
        """Turn the end of a child into an event, once its checkpoints are kept."""
        if self._exit is None or self._checkpoints:
            return
        exit_, self._exit = self._exit, None
        last, self._last = self._last, None
        if isinstance(last, Ended):
            # A job without a batch has positions, too, at which its topics are held.
            if starts := self._keeper.find_starts():
                self._publisher.offer(starts)
            self._apply(AttemptEnded(self._clock.now(), last.caught_up))
        elif last is not None:
            self._fail(last.failure, last.trace)
        else:
            died = HeadgateError(
                "DRIVER_DIED",
                f"job {self._home.name!r}: the process of Spark's driver ended: {exit_}",
                hint=f"headgate logs {self._home.name}",
                domain=Domain.EXTERNAL,
                retryable=True,
                root_cause=exit_,
            )
            self._fail(to_failure(died, at=self._clock.now(), where="driver"))

    def _fail(self, failure: Failure, trace: str = "") -> None:
        self._failure = failure.to_error()
        self._cut_off = True
        if self._machine.state is not JobState.CANCELING:
            self._note_failure(failure, trace)
        self._apply(AttemptFailed(self._clock.now(), failure))

    def _note_failure(self, failure: Failure, trace: str) -> None:
        names = ("code", "message", "root_cause", "where", "retryable", "hint")
        facts = {name: getattr(failure, name) for name in names}
        now = self._clock.now()
        with contextlib.suppress(OSError):
            self._home.add_event(now, "FAILURE", attempt=self._machine.attempt, **facts)
            if trace:
                add_trace(self._home, now, trace)

    def _batch_committed(self, report: BatchReport) -> None:
        try:
            self._keeper.batch_committed(report)
        except (HeadgateError, OSError) as error:
            self._checkpoint_failed(error)
        self._keep_due()

    def _checkpoint_failed(self, error: Exception) -> None:
        self._meter.checkpoint_failed()
        self._note("CHECKPOINT_FAILED", **self._explain(error).as_dict())

    def _keep_due(self) -> None:
        """Have the last batch kept, if a checkpoint is due and not too many others wait.

        Only while an attempt lives: its end waits for the checkpoints that are being linked.
        """
        if self._child is None or len(self._checkpoints) > _MOST_WAITING:
            return
        if keep := self._keeper.take_due():
            self._checkpoints.append(self._linker.submit(keep))

    def _notice_checkpoints(self) -> None:
        """Report the checkpoints that were kept; a job goes on without one, and reports that."""
        while self._checkpoints and self._checkpoints[0].done():
            try:
                kept = self._checkpoints.popleft().result()
            except (HeadgateError, OSError) as error:
                self._checkpoint_failed(error)
                continue
            if kept is not None:
                self._meter.checkpoint_kept()
                self._note("CHECKPOINT", **kept, run=self._snapshot.lineage)
                self._publisher.offer(self._keeper.positions)

    def _notice_timer(self) -> None:
        if self._due is not None and self._clock.monotonic() >= self._due:
            self._due = None
            self._apply(RestartDue(self._clock.now()))

    def _notice_intent(self) -> None:
        try:
            intent = find_intent(self._home)
        except HeadgateError as error:
            # A running job goes on, whatever is in that file.
            self._intent_error = error.as_dict()
            return
        if intent is None or intent.number <= self._followed:
            return
        self._note("INTENT", number=intent.number, verb=intent.verb.value, by=intent.by)
        self._followed = intent.number
        self._intent_error = None
        try:
            self._apply(to_wanted(intent, at=self._clock.now()))
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
        """Turn the end of a savepoint into an event."""
        if self._savepoint is None or not self._savepoint.done():
            return
        savepoint, self._savepoint = self._savepoint, None
        try:
            self._note("SAVEPOINT", **savepoint.result(), run=self._snapshot.lineage)
            self._meter.savepoint_taken()
        except Exception as error:  # noqa: BLE001 - a job goes on without a savepoint
            self._meter.savepoint_failed()
            facts = self._explain(error).as_dict()
            if self._followed == self._savepoint_intent:
                self._intent_error = facts
            self._note("SAVEPOINT_FAILED", **facts)
        self._apply(SavepointEnded(self._clock.now()))

    def _explain(self, error: Exception) -> HeadgateError:
        """Return the error of a checkpoint or savepoint that was not taken."""
        if isinstance(error, HeadgateError):
            return error
        if isinstance(error, OSError):
            return HeadgateError(
                "CHECKPOINT_NOT_WRITTEN",
                f"cannot write a checkpoint or a savepoint: {error}",
                domain=Domain.EXTERNAL,
            )
        return HeadgateError(
            "INTERNAL",
            f"cannot take a savepoint of job {self._home.name!r}: {type(error).__name__}: {error}",
            hint="report it with the job's logs",
            domain=Domain.INTERNAL,
        )

    # Actions.

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
                self._meter.attempt_launched()
                if attempt > 1:
                    self._meter.restarted(self._machine.failures[-1].code)
                self._launch(attempt)
            case ScheduleRestart(after):
                self._due = self._clock.monotonic() + after.total_seconds()
            case KillAttempt():
                if self._child is not None:
                    self._child.kill()
            case TakeSavepoint(to, intent):
                self._savepoint_intent = intent
                self._abandoned = threading.Event()
                take = self._keeper.begin_savepoint(to)
                self._savepoint = self._copier.submit(take, self._abandoned.is_set)
            case AbandonSavepoint():
                self._abandoned.set()
            case Finish():
                self._due = None
                try:
                    self._keeper.job_ended(canceled=self._machine.state is JobState.CANCELED)
                except HeadgateError as error:
                    # The job is canceled all the same.
                    self._note("CHECKPOINTS_NOT_DELETED", **error.as_dict())
            case OrderAttempt(order):
                if self._child is not None:
                    self._child.order(order)

    def _launch(self, attempt: int) -> None:
        """Launch an attempt; a refused launch is a failure like any other."""
        try:
            spec = self._spec(attempt)
        except HeadgateError as error:
            failure = to_failure(error, at=self._clock.now(), where="supervisor")
            self._fail(failure, format_trace(error))
            return
        self._child = self._launcher.launch(spec)

    # Reports.

    def _note_state(self) -> None:
        machine = self._machine
        reason = {"reason": machine.reason} if machine.reason else {}
        self._note(machine.state.value, attempt=machine.attempt, **reason)

    def _note(self, kind: str, **facts: Any) -> None:
        # The job may still be able to write elsewhere than to a full disk.
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
            "newest": encode(_without_parts(self._keeper.kept)),
            "pid": os.getpid(),
            "child": None if self._child is None else self._child.pid,
            "intent": self._followed,
            "intent_error": self._intent_error,
            "at": self._clock.now().isoformat(),
        }
        # The next status comes soon.
        with contextlib.suppress(OSError):
            self._home.write_status(status)
        self._watcher.on_snapshot(snapshot)


def _without_parts(kept: Checkpoint | None) -> Checkpoint | None:
    """Return a checkpoint without what is said of each source and operator."""
    return None if kept is None else replace(kept, sources={}, state={})


def to_wanted(intent: Intent, *, at: datetime) -> Wanted:
    """Return the event of the machine that an intent stands for."""
    arguments = intent.arguments
    to = arguments.get("to" if intent.verb is Verb.SAVEPOINT else "savepoint")
    return Wanted(at, intent.verb, bool(arguments.get("drain")), to, intent.number)
