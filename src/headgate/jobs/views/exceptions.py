"""The failures and the attempts of a job: read from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate._clock import Clock, SystemClock
from headgate._codec import Moment, RoundedSeconds, alias, decode
from headgate.jobs.event_files import EVENTS, count_events
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.supervision.trace_file import read_traces
from headgate.jobs.views.events import JobEvent, read_back
from headgate.jobs.views.job import DEAD

DEFAULT_LIMIT = 50
_STATES = frozenset(state.value for state in JobState)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """Why one attempt ended; fields that the event does not have are empty.

    Attributes:
        root_cause: The message of the innermost cause.
        where: The part that failed: flow, driver, query.
        hint: The next step.
        trace: The stack trace, of the job's last failures only: that of the JVM first.
    """

    root_cause: str = ""
    attempt: int = 0
    at: Moment
    code: str = ""
    message: str = ""
    where: str = ""
    hint: str = ""
    retryable: bool = False
    trace: str = ""


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """One attempt of a job.

    Attributes:
        number: Counts from 1 with each start of the job.
        ended: None while it runs, and if its supervisor was killed.
        state: The state of the job after it, or now.
        lasted: None if its end is unknown.
        reason: Why it ended, if known.
    """

    number: int
    started: Moment
    ended: Moment | None
    state: str
    lasted: RoundedSeconds | None = field(metadata=alias("lasted_s"))
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Exceptions:
    """The failures and the attempts of a job, newest first.

    Attributes:
        total: The number of all failures of the job.
    """

    job: str
    failures: tuple[JobFailure, ...]
    attempts: tuple[JobAttempt, ...]
    total: int


def list_exceptions(
    home: JobFolder, *, limit: int = DEFAULT_LIMIT, clock: Clock | None = None
) -> Exceptions:
    """Return the failures and the attempts of a job, newest first.

    Args:
        limit: The maximum number of failures, and of attempts.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    traces = read_traces(home)
    states: list[JobEvent] = []
    failures: list[JobFailure] = []
    starts = 0
    for event in read_back(file, counts, kinds=_STATES | {"FAILURE"}):
        if event.kind == "FAILURE" and len(failures) < limit:
            failures.append(_failure(event, traces.get(event.at, "")))
        elif event.kind != "FAILURE" and starts < limit:
            states.append(event)
            starts += event.kind == JobState.STARTING
        if starts >= limit and len(failures) >= min(limit, counts.kinds["FAILURE"]):
            break
    attempts = _attempts(reversed(states), home, clock or SystemClock())
    return Exceptions(home.name, tuple(failures), tuple(attempts[::-1]), counts.kinds["FAILURE"])


def _failure(event: JobEvent, trace: str) -> JobFailure:
    known = {name: value for name, value in event.facts.items() if value is not None}
    return decode(JobFailure, {**known, "at": event.at, "trace": trace})


def _attempts(states: Iterable[JobEvent], home: JobFolder, clock: Clock) -> list[JobAttempt]:
    attempts: list[JobAttempt] = []
    start: JobEvent | None = None
    last: JobEvent | None = None
    for event in states:
        if event.kind == JobState.STARTING:
            if start is not None and last is not None:
                # Its supervisor was killed: only the next start shows that it ended.
                attempts.append(JobAttempt(_number(start, last), start.at, None, DEAD, None))
            start = last = event
        elif start is not None:
            last = event
            if event.kind == JobState.RESTARTING or JobState(event.kind).is_final:
                number, reason = _number(start, event), str(event.facts.get("reason") or "")
                lasted = event.at - start.at
                attempts.append(JobAttempt(number, start.at, event.at, event.kind, lasted, reason))
                start = None
    if start is not None and last is not None:
        running = has_supervisor(home)
        lasted_so_far = clock.now() - start.at if running else None
        state = last.kind if running else DEAD
        attempts.append(JobAttempt(_number(start, last), start.at, None, state, lasted_so_far))
    return attempts


def _number(start: JobEvent, last: JobEvent) -> int:
    # The first STARTING of a job is written before its attempt is counted.
    return max(1, int(start.facts.get("attempt") or 0), int(last.facts.get("attempt") or 0))
