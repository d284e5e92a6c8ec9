"""The life of a job as a pure function: what it is and what happens give what it is next.

The supervisor feeds `step` with events and performs the actions it returns, in their order; it
decides nothing itself. An event that makes no sense raises ILLEGAL_TRANSITION and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headgate._codec import encode
from headgate.errors import Domain, HeadgateError
from headgate.jobs.lifecycle.restart import Failure, RestartStrategy
from headgate.jobs.lifecycle.states import TRANSITIONS, JobState
from headgate.jobs.lifecycle.vocabulary import (
    Action,
    AttemptEnded,
    AttemptFailed,
    AttemptRunning,
    CancelWanted,
    Event,
    Finish,
    KillAttempt,
    LaunchAttempt,
    OrderDrain,
    OrderHold,
    OrderOpen,
    OrderStop,
    PauseWanted,
    RestartDue,
    ResumeWanted,
    ScheduleRestart,
    StopWanted,
    Submitted,
    TakeSavepoint,
)

__all__ = [
    "Action",
    "AttemptEnded",
    "AttemptFailed",
    "AttemptRunning",
    "CancelWanted",
    "Event",
    "Finish",
    "KillAttempt",
    "LaunchAttempt",
    "Machine",
    "OrderDrain",
    "OrderHold",
    "OrderOpen",
    "OrderStop",
    "PauseWanted",
    "RestartDue",
    "ResumeWanted",
    "ScheduleRestart",
    "StopWanted",
    "Submitted",
    "TakeSavepoint",
    "refusal",
    "step",
]

# What `headgate show` can look back on, where the strategy asks for less.
_FAILURES_KEPT = 20

Step = tuple["Machine", tuple[Action, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A job at one moment, as far as its life goes.

    Attributes:
        job: The job's name, for messages.
        attempt: The number of the attempt that is alive, or was last; 0 before the first.
        failures: The last failures, oldest first: as many as the strategy asks for, and at
            least 20 if there were as many.
        started_at: When the job was submitted; None before.
        since: When it came into its present state.
        healthy_since: When the present attempt began to work; None if it has not.
        restart_after: How long the job waits before its next attempt, while it is RESTARTING.
        held: Whether attempts are to read nothing; outlives the attempt it was said to.
        draining: Whether a job that is STOPPING reads what is there first.
        savepoint: Where the savepoint goes that was asked for with the stop; None for none.
        reason: Why the last attempt ended, or the job; empty while neither has, or where the
            user asked for it.
    """

    job: str
    strategy: RestartStrategy
    state: JobState = JobState.STARTING
    attempt: int = 0
    failures: tuple[Failure, ...] = ()
    started_at: datetime | None = None
    since: datetime | None = None
    healthy_since: datetime | None = None
    restart_after: timedelta | None = None
    held: bool = False
    draining: bool = False
    savepoint: str | None = None
    reason: str = ""

    @property
    def restarts(self) -> int:
        """How many attempts followed the first."""
        return max(0, self.attempt - 1)

    def to_json(self) -> dict[str, Any]:
        """Return what the status tells of it, as JSON values."""
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
            "last_failure": encode(self.failures[-1]) if self.failures else None,
        }


def step(job: Machine, event: Event) -> Step:
    """Return the job after an event, and what is to be done about it."""
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
            if job.state is not JobState.RESTARTING:
                raise _illegal(job, event)
            return _launch(replace(job, state=JobState.STARTING, restart_after=None))
        case StopWanted():
            return _stop(job, event)
        case CancelWanted():
            return _cancel(job, event)
        case PauseWanted():
            return _pause(job, event)
        case ResumeWanted():
            return _resume(job, event)


def _launch(job: Machine) -> Step:
    after = replace(job, attempt=job.attempt + 1, healthy_since=None)
    launch = LaunchAttempt(after.attempt)
    # Before its first batch, since a pause that a restart forgets is none.
    return after, (launch, OrderHold()) if job.held else (launch,)


def _running(job: Machine, event: AttemptRunning) -> Step:
    match job.state:
        case JobState.STARTING:
            state = JobState.PAUSED if job.held else JobState.RUNNING
            return replace(job, state=state, healthy_since=event.at), ()
        case JobState.STOPPING | JobState.CANCELLING:
            # The order to end was on its way already.
            return job, ()
    raise _illegal(job, event)


def _failed(job: Machine, event: AttemptFailed) -> Step:
    if job.state is JobState.CANCELLING:
        return _finish(job, JobState.CANCELED)
    if not _has_attempt(job):
        raise _illegal(job, event)
    failure = replace(event.failure, attempt=job.attempt, healthy=_healthy(job, event.at))
    kept = max(_FAILURES_KEPT, job.strategy.memory)
    failed = replace(job, failures=(*job.failures, failure)[-kept:], healthy_since=None)
    told = f"attempt {job.attempt} failed: {failure.code} {failure.message}"
    if job.state is JobState.STOPPING:
        lost = ", and the savepoint that was asked for was not taken"
        told += f"; it was being stopped{'' if job.savepoint is None else lost}"
        return _finish(failed, JobState.FAILED, told)
    delay = job.strategy.next_delay(failed.failures)
    if delay is None:
        why = (
            f"the strategy {job.strategy} allows no other attempt"
            if failure.retryable
            else "waiting does not mend it"
        )
        return _finish(failed, JobState.FAILED, f"{told}; {why}")
    waiting = replace(failed, state=JobState.RESTARTING, restart_after=delay, reason=told)
    return waiting, (ScheduleRestart(delay),)


def _ended(job: Machine, event: AttemptEnded) -> Step:
    if job.state is JobState.CANCELLING:
        return _finish(job, JobState.CANCELED)
    if not _has_attempt(job):
        raise _illegal(job, event)
    if job.state is JobState.STOPPING:
        after, finish = _finish(job, JobState.STOPPED)
        taken = () if job.savepoint is None else (TakeSavepoint(job.savepoint),)
        return after, (*taken, *finish)
    if event.caught_up:
        return _finish(job, JobState.FINISHED, "all that was there has been read")
    return _finish(job, JobState.STOPPED, f"attempt {job.attempt} ended, and nobody had asked")


def _stop(job: Machine, event: StopWanted) -> Step:
    if job.state is JobState.RESTARTING:
        # No attempt is alive that could read or come to a batch's end, and what the last one
        # left may be in the middle of a batch.
        if event.drain or event.savepoint is not None:
            raise _cannot_stop_so(job, "--drain" if event.drain else "--savepoint")
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
        reason="",
    )
    if not event.drain:
        return after, (OrderStop(),)
    return after, (OrderOpen(), OrderDrain()) if job.held else (OrderDrain(),)


def _cancel(job: Machine, event: CancelWanted) -> Step:
    if job.state is JobState.RESTARTING:
        return _finish(job, JobState.CANCELED)
    if not _has_attempt(job):
        raise _illegal(job, event)
    after = replace(
        job, state=JobState.CANCELLING, held=False, draining=False, savepoint=None, reason=""
    )
    return after, (KillAttempt(),)


def _pause(job: Machine, event: PauseWanted) -> Step:
    match job.state:
        case JobState.RUNNING:
            return replace(job, state=JobState.PAUSED, held=True), (OrderHold(),)
        case JobState.STARTING:
            return replace(job, held=True), (OrderHold(),)
        case JobState.RESTARTING:
            return replace(job, held=True), ()
    raise _illegal(job, event)


def _resume(job: Machine, event: ResumeWanted) -> Step:
    if not job.held:
        raise _illegal(job, event)
    opened = replace(job, held=False)
    match job.state:
        case JobState.PAUSED:
            return replace(opened, state=JobState.RUNNING), (OrderOpen(),)
        case JobState.STARTING:
            return opened, (OrderOpen(),)
    return opened, ()


def _finish(job: Machine, state: JobState, reason: str = "") -> Step:
    after = replace(
        job,
        state=state,
        healthy_since=None,
        restart_after=None,
        held=False,
        draining=False,
        savepoint=None,
        reason=reason,
    )
    return after, (Finish(state),)


def _has_attempt(job: Machine) -> bool:
    """Whether an attempt is alive that nobody has killed."""
    return job.state in (
        JobState.STARTING,
        JobState.RUNNING,
        JobState.PAUSED,
        JobState.STOPPING,
    )


def _healthy(job: Machine, at: datetime) -> timedelta:
    """Return how long the attempt has worked; none where the clock was put back."""
    if job.healthy_since is None:
        return timedelta(0)
    return max(timedelta(0), at - job.healthy_since)


_VERBS: dict[type[Event], str] = {
    StopWanted: "stop",
    CancelWanted: "cancel",
    PauseWanted: "pause",
    ResumeWanted: "resume",
}


def _illegal(job: Machine, event: Event) -> HeadgateError:
    verb = _VERBS.get(type(event))
    if verb is not None:
        return refusal(job.job, verb, job.state)
    return HeadgateError(
        "ILLEGAL_TRANSITION",
        f"cannot apply {type(event).__name__} to job {job.job!r}: it is {job.state}, which "
        "does not allow it",
        domain=Domain.INTERNAL,
    )


def _cannot_stop_so(job: Machine, flag: str) -> HeadgateError:
    return HeadgateError(
        "ILLEGAL_TRANSITION",
        f"cannot stop job {job.job!r} with {flag}: it is {job.state}, and that needs a "
        "running attempt",
        hint=f"headgate stop {job.job}",
    )


def _isoformat(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
