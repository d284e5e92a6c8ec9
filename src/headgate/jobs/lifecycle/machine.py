"""The life of a job as a pure function: a state and an event give the next state and actions.

The supervisor feeds `step` with events and performs the actions it returns, in their order. An
event that the state does not allow raises ILLEGAL_TRANSITION and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headgate._codec import encode
from headgate.errors import Domain, HeadgateError
from headgate.jobs.lifecycle.failures import Failure
from headgate.jobs.lifecycle.restart import HEALTHY, RestartStrategy
from headgate.jobs.lifecycle.states import TRANSITIONS, JobState
from headgate.jobs.lifecycle.vocabulary import (
    AbandonSavepoint,
    Action,
    AttemptEnded,
    AttemptFailed,
    AttemptRunning,
    Event,
    Finish,
    Interrupted,
    KillAttempt,
    LaunchAttempt,
    Order,
    OrderAttempt,
    Request,
    RestartDue,
    SavepointEnded,
    ScheduleRestart,
    Submitted,
    TakeSavepoint,
    Verb,
    Wanted,
)

# How many failures `headgate show` can list, if the strategy needs fewer.
_FAILURES_KEPT = 20

Step = tuple["Machine", tuple[Action, ...]]


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a job that has no attempt left, and waits for a savepoint."""

    state: JobState
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A job at one moment, as far as its life goes.

    Attributes:
        job: The job's name, for messages.
        attempt: The number of the attempt that is alive, or was last; 0 before the first.
        failures: The last failures, oldest first: as many as the strategy asks for, and at
            least 20 if there were as many.
        failures_in_a_row: How many attempts have failed since one ran for HEALTHY.
        started_at: When the job was submitted; None before.
        since: When it came into its present state.
        healthy_since: When the present attempt began to work; None if it has not.
        restart_after: How long the job waits before its next attempt, while it is RESTARTING.
        held: Whether attempts must not read; a restart keeps it.
        draining: Whether a job that is STOPPING reads all available records first.
        savepoint: Where the savepoint of a stop goes that has not begun; None for none.
        savepoint_intent: The number of the intent that asked for it; 0 for none.
        saving: Whether a savepoint is being taken; its copy needs no attempt.
        ending: How the job ends once that savepoint has ended; None while an attempt is alive or
            another one follows.
        reason: Why the last attempt ended, or the job; empty while neither has, or where the
            user asked for it.
    """

    job: str
    strategy: RestartStrategy
    state: JobState = JobState.STARTING
    attempt: int = 0
    failures: tuple[Failure, ...] = ()
    failures_in_a_row: int = 0
    started_at: datetime | None = None
    since: datetime | None = None
    healthy_since: datetime | None = None
    restart_after: timedelta | None = None
    held: bool = False
    draining: bool = False
    savepoint: str | None = None
    savepoint_intent: int = 0
    saving: bool = False
    ending: Ending | None = None
    reason: str = ""

    @property
    def restarts(self) -> int:
        """How many attempts followed the first."""
        return max(0, self.attempt - 1)

    def to_json(self) -> dict[str, Any]:
        """Return the job's part of `status.json`, as JSON values."""
        return {
            "state": self.state.value,
            "since": _isoformat(self.since),
            "attempt": self.attempt,
            "restarts": self.restarts,
            "restart": str(self.strategy),
            "restart_after_s": (
                None if self.restart_after is None else self.restart_after.total_seconds()
            ),
            "started_at": _isoformat(self.started_at),
            "healthy_since": _isoformat(self.healthy_since),
            "held": self.held,
            "reason": self.reason,
            "failures": self.failures_in_a_row,
            "last_failure": encode(self.failures[-1]) if self.failures else None,
        }


def step(job: Machine, event: Event) -> Step:
    """Return the job after an event, and the actions to perform."""
    if isinstance(event, Submitted) != (job.started_at is None):
        raise _illegal(job, event)
    after, actions = _decide(job, event)
    if after.state is job.state:
        return after, actions
    if after.state not in TRANSITIONS[job.state]:
        raise HeadgateError(
            "ILLEGAL_TRANSITION",
            f"cannot move job {job.job!r} from {job.state} to {after.state}: there is no such "
            "transition",
            domain=Domain.INTERNAL,
        )
    return replace(after, since=event.at), actions


def refusal(job: str, verb: str, state: JobState) -> HeadgateError:
    """Return the error for a verb that a job in this state cannot follow."""
    if state.is_final and verb in ("pause", "resume"):
        hint = f"headgate start {job}"
    elif state is JobState.PAUSED and verb == "pause":
        hint = f"headgate resume {job}"
    elif state is JobState.STOPPING and verb == "stop":
        hint = f"headgate cancel {job}"
    else:
        hint = f"headgate show {job}"
    return HeadgateError(
        "ILLEGAL_TRANSITION", f"cannot {verb} job {job!r}: it is {state}", hint=hint
    )


def _decide(job: Machine, event: Event) -> Step:
    match event:
        case Submitted():
            launched = replace(job, started_at=event.at, since=event.at)
            return _launch(launched)
        case AttemptRunning():
            return _running(job, event)
        case AttemptFailed():
            return _failed(job, event)
        case AttemptEnded():
            return _ended(job, event)
        case RestartDue():
            return _restart(job, event)
        case SavepointEnded():
            return _saved(job, event)
        case _:
            return _follow(job, event)


def _follow(job: Machine, event: Request) -> Step:
    match event:
        case Wanted(verb=Verb.STOP | Verb.RESTART):
            return _stop(job, event)
        case Wanted(verb=Verb.CANCEL):
            return _cancel(job, event)
        case Wanted(verb=Verb.PAUSE):
            return _pause(job, event)
        case Wanted(verb=Verb.RESUME):
            return _resume(job, event)
        case Wanted():
            return _save(job, event)
        case Interrupted() if job.state is JobState.STOPPING:
            return _cancel(job, event)
        case _:
            # Later signals change nothing, and neither does a host that stops an ending job.
            return _stop(job, Wanted(event.at, Verb.STOP)) if _can_stop(job) else (job, ())


def _restart(job: Machine, event: RestartDue) -> Step:
    if job.ending is not None:
        # The timer was set before the stop.
        return job, ()
    if job.state is not JobState.RESTARTING:
        raise _illegal(job, event)
    return _launch(replace(job, state=JobState.STARTING, restart_after=None))


def _launch(job: Machine) -> Step:
    after = replace(job, attempt=job.attempt + 1, healthy_since=None)
    launch = LaunchAttempt(after.attempt)
    # Before its first batch: a pause outlives the restart.
    return after, (launch, OrderAttempt(Order.HOLD)) if job.held else (launch,)


def _running(job: Machine, event: AttemptRunning) -> Step:
    match job.state:
        case JobState.STARTING:
            state = JobState.PAUSED if job.held else JobState.RUNNING
            return replace(job, state=state, healthy_since=event.at), ()
        case JobState.STOPPING | JobState.CANCELING:
            # The order to end was on its way already.
            return job, ()
    raise _illegal(job, event)


def _failed(job: Machine, event: AttemptFailed) -> Step:
    if job.state is JobState.CANCELING and job.ending is None:
        return _finish(job, JobState.CANCELED)
    if not _has_attempt(job):
        raise _illegal(job, event)
    healthy = _healthy(job, event.at)
    failure = replace(event.failure, at=event.at, attempt=job.attempt, healthy=healthy)
    kept = max(_FAILURES_KEPT, job.strategy.memory)
    failed = replace(
        job,
        failures=(*job.failures, failure)[-kept:],
        failures_in_a_row=1 if healthy >= HEALTHY else job.failures_in_a_row + 1,
        healthy_since=None,
    )
    reason = f"attempt {job.attempt} failed: {failure.code} {failure.message}"
    if job.state is JobState.STOPPING:
        reason += "; it was being stopped"
        if job.savepoint is not None:
            reason += ", and the savepoint that was asked for was not taken"
        # A plain stop only asks that the attempt ends.
        got_it = job.savepoint is None and not job.draining
        state = JobState.STOPPED if got_it else JobState.FAILED
        return _finish(replace(failed, savepoint=None), state, reason)
    delay = job.strategy.next_delay(failed.failures)
    if delay is None:
        why = (
            f"the strategy {job.strategy} allows no other attempt"
            if failure.retryable
            else "a later attempt cannot succeed"
        )
        return _finish(failed, JobState.FAILED, f"{reason}; {why}")
    waiting = replace(failed, state=JobState.RESTARTING, restart_after=delay, reason=reason)
    return waiting, (ScheduleRestart(delay),)


def _ended(job: Machine, event: AttemptEnded) -> Step:
    if job.state is JobState.CANCELING and job.ending is None:
        return _finish(job, JobState.CANCELED)
    if not _has_attempt(job):
        raise _illegal(job, event)
    if job.state is JobState.STOPPING:
        return _finish(job, JobState.STOPPED)
    if event.caught_up:
        return _finish(job, JobState.FINISHED, "all that was there has been read")
    return _finish(job, JobState.STOPPED, f"attempt {job.attempt} ended without a request")


def _stop(job: Machine, event: Wanted) -> Step:
    if job.state is JobState.RESTARTING:
        # No attempt is alive that could read, and the last one may have left an open batch.
        if event.drain or event.savepoint is not None:
            flag = "--drain" if event.drain else "--savepoint"
            raise HeadgateError(
                "ILLEGAL_TRANSITION",
                f"cannot stop job {job.job!r} with {flag}: it is {job.state}, and that needs a "
                "running attempt",
                hint=f"headgate stop {job.job}",
            )
        return _finish(job, JobState.STOPPED)
    # A drain may take long, so a plain stop cuts it short; nothing else stops a job twice.
    again = job.state is JobState.STOPPING and (event.drain or not job.draining)
    if again or not _has_attempt(job):
        raise _illegal(job, event)
    after = replace(
        job,
        state=JobState.STOPPING,
        held=False,
        draining=event.drain,
        savepoint=job.savepoint if event.savepoint is None else event.savepoint,
        savepoint_intent=job.savepoint_intent if event.savepoint is None else event.intent,
        reason="",
    )
    if not event.drain:
        return after, (OrderAttempt(Order.STOP),)
    return after, (OrderAttempt(Order.OPEN), OrderAttempt(Order.DRAIN)) if job.held else (
        OrderAttempt(Order.DRAIN),
    )


def _cancel(job: Machine, event: Request) -> Step:
    alive = _has_attempt(job)
    if not alive and job.state not in (JobState.RESTARTING, JobState.STOPPING):
        raise _illegal(job, event)
    abandon = (AbandonSavepoint(),) if job.saving else ()
    canceled = replace(job, held=False, draining=False, savepoint=None, ending=None, reason="")
    if alive:
        return replace(canceled, state=JobState.CANCELING), (KillAttempt(), *abandon)
    after, actions = _finish(canceled, JobState.CANCELED)
    return after, (*abandon, *actions)


def _save(job: Machine, event: Wanted) -> Step:
    if not _can_stop(job) and job.state is not JobState.STOPPING:
        raise _illegal(job, event)
    if job.saving or job.savepoint is not None:
        raise HeadgateError(
            "JOB_BUSY",
            f"cannot take a savepoint of job {job.job!r}: another one is being taken",
            hint=f"headgate show {job.job}",
            retryable=True,
        )
    return replace(job, saving=True), (TakeSavepoint(event.savepoint or "", event.intent),)


def _saved(job: Machine, event: SavepointEnded) -> Step:
    if not job.saving:
        raise _illegal(job, event)
    after = replace(job, saving=False)
    ending = job.ending
    return (after, ()) if ending is None else _finish(after, ending.state, ending.reason)


def _pause(job: Machine, event: Wanted) -> Step:
    match job.state:
        case JobState.RUNNING:
            return replace(job, state=JobState.PAUSED, held=True), (OrderAttempt(Order.HOLD),)
        case JobState.STARTING:
            return replace(job, held=True), (OrderAttempt(Order.HOLD),)
        case JobState.RESTARTING:
            return replace(job, held=True), ()
    raise _illegal(job, event)


def _resume(job: Machine, event: Wanted) -> Step:
    if not job.held:
        raise _illegal(job, event)
    opened = replace(job, held=False)
    match job.state:
        case JobState.PAUSED:
            return replace(opened, state=JobState.RUNNING), (OrderAttempt(Order.OPEN),)
        case JobState.STARTING:
            return opened, (OrderAttempt(Order.OPEN),)
    return opened, ()


def _finish(job: Machine, state: JobState, reason: str = "") -> Step:
    """End a job that has no attempt, once the savepoints that were asked for have ended."""
    over = replace(
        job,
        healthy_since=None,
        restart_after=None,
        held=False,
        draining=False,
        savepoint=None,
        reason=reason,
    )
    if not job.saving and job.savepoint is None:
        return replace(over, state=state, ending=None), (Finish(state),)
    waits = JobState.CANCELING if state is JobState.CANCELED else JobState.STOPPING
    waiting = replace(over, state=waits, ending=Ending(state, reason))
    if job.saving:
        return replace(waiting, savepoint=job.savepoint), ()
    return replace(waiting, saving=True), (
        TakeSavepoint(job.savepoint or "", job.savepoint_intent),
    )


def _has_attempt(job: Machine) -> bool:
    """Whether an attempt is alive that was not killed."""
    return job.ending is None and job.state in (
        JobState.STARTING,
        JobState.RUNNING,
        JobState.PAUSED,
        JobState.STOPPING,
    )


def _can_stop(job: Machine) -> bool:
    """Whether the job neither has ended nor is ending."""
    return job.state in (
        JobState.STARTING,
        JobState.RUNNING,
        JobState.PAUSED,
        JobState.RESTARTING,
    )


def _healthy(job: Machine, at: datetime) -> timedelta:
    """Return how long the attempt has worked; zero if the clock was set back."""
    if job.healthy_since is None:
        return timedelta(0)
    return max(timedelta(0), at - job.healthy_since)


def _illegal(job: Machine, event: Event) -> HeadgateError:
    if isinstance(event, Wanted):
        verb = "take a savepoint of" if event.verb is Verb.SAVEPOINT else event.verb.value
        return refusal(job.job, verb, job.state)
    return HeadgateError(
        "ILLEGAL_TRANSITION",
        f"cannot apply {type(event).__name__} to job {job.job!r}: it is {job.state}, which "
        "does not allow it",
        domain=Domain.INTERNAL,
    )


def _isoformat(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
