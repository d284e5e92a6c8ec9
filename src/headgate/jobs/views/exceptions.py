"""Why attempts of a job failed, and which attempts there were: out of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate._clock import Clock, SystemClock
from headgate._codec import Moment, RoundedSeconds, alias
from headgate.jobs.event_files import EVENTS, count_events
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.views.events import JobEvent, read_back

DEFAULT_LIMIT = 50
_STATES = frozenset(each.value for each in JobState)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """Why one attempt ended.

    Attributes:
        root_cause: The innermost cause, in the words of whoever threw it.
        where: The room it came from: flow, driver, query.
        hint: One next step; empty in events of releases that did not keep it.
    """

    root_cause: str
    attempt: int
    at: Moment
    code: str
    message: str
    where: str
    hint: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """One attempt of a job.

    Attributes:
        number: Counts from 1 with each start of the job.
        ended: None while it lives, and where nobody was left to tell of its end.
        state: The state the job was in after it, or is in.
        lasted: None where its end is not known.
        reason: Why it ended, where that was told.
    """

    number: int
    started: Moment
    ended: Moment | None
    state: str
    lasted: RoundedSeconds | None = field(metadata=alias("lasted_s"))
    reason: str


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The failures and the attempts of a job, newest first.

    Attributes:
        total: How many failures there ever were.
    """

    job: str
    failures: tuple[JobFailure, ...]
    attempts: tuple[JobAttempt, ...]
    total: int


def list_exceptions(
    home: JobFolder, *, limit: int = DEFAULT_LIMIT, clock: Clock | None = None
) -> Exceptions:
    """Return why attempts of a job failed and which attempts there were.

    Args:
        limit: How many failures and how many attempts at most.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    states: list[JobEvent] = []
    failures: list[JobFailure] = []
    starts = 0
    for event in read_back(file, counts, kinds=_STATES | {"FAILURE"}):
        if event.kind == "FAILURE" and len(failures) < limit:
            failures.append(_failure(event))
        elif event.kind != "FAILURE" and starts < limit:
            states.append(event)
            starts += event.kind == JobState.STARTING
        full = starts >= limit and len(failures) >= min(limit, counts.kinds["FAILURE"])
        if full:
            break
    attempts = _attempts(reversed(states), home, clock or SystemClock())
    return Exceptions(home.name, tuple(failures), tuple(attempts[::-1]), counts.kinds["FAILURE"])


def _failure(event: JobEvent) -> JobFailure:
    told = event.facts
    return JobFailure(
        attempt=int(told.get("attempt") or 0),
        at=event.at,
        code=str(told.get("code") or ""),
        message=str(told.get("message") or ""),
        root_cause=str(told.get("root_cause") or ""),
        where=str(told.get("where") or ""),
        hint=str(told.get("hint") or ""),
        retryable=bool(told.get("retryable")),
    )


def _attempts(states: Iterable[JobEvent], home: JobFolder, clock: Clock) -> list[JobAttempt]:
    found: list[JobAttempt] = []
    start: JobEvent | None = None
    last: JobEvent | None = None
    for event in states:
        if event.kind == JobState.STARTING:
            if start is not None and last is not None:
                # Its supervisor was killed: the next start is all that tells of its end.
                found.append(_unended(start, last))
            start = last = event
        elif start is not None:
            last = event
            if event.kind == JobState.RESTARTING or JobState(event.kind).is_final:
                found.append(_ended(start, event))
                start = None
    if start is not None and last is not None:
        lives = has_supervisor(home)
        lasted = clock.now() - start.at if lives else None
        state = last.kind if lives else "DEAD"
        found.append(JobAttempt(_number(start, last), start.at, None, state, lasted, ""))
    return found


def _ended(start: JobEvent, end: JobEvent) -> JobAttempt:
    reason = str(end.facts.get("reason") or "")
    lasted = end.at - start.at
    return JobAttempt(_number(start, end), start.at, end.at, end.kind, lasted, reason)


def _unended(start: JobEvent, last: JobEvent) -> JobAttempt:
    return JobAttempt(_number(start, last), start.at, None, "DEAD", None, "")


def _number(start: JobEvent, last: JobEvent) -> int:
    # The first start of a job is told before its attempt is counted.
    return max(1, int(start.facts.get("attempt") or 0), int(last.facts.get("attempt") or 0))
