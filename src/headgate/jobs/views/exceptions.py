"""Why attempts of a job failed, and which attempts there were: out of its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate.jobs.event_files import EVENTS, count_events
from headgate.jobs.home import JobHome
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.registry import get_home
from headgate.jobs.views.events import JobEvent, read_back

DEFAULT_LIMIT = 50
_STATES = frozenset(each.value for each in JobState)


@dataclass(frozen=True, slots=True)
class JobFailure:
    """Why one attempt ended.

    Attributes:
        root_cause: The innermost cause, in the words of whoever threw it.
        where: The room it came from: flow, driver, query.
        hint: One next step; empty in events of releases that did not keep it.
    """

    attempt: int
    at: datetime
    code: str
    message: str
    root_cause: str
    where: str
    hint: str
    retryable: bool

    def to_json(self) -> dict[str, Any]:
        """Return the failure as JSON values, its root cause first."""
        return {
            "root_cause": self.root_cause,
            "attempt": self.attempt,
            "at": self.at.isoformat(),
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
            "retryable": self.retryable,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> JobFailure:
        """Return the failure that `to_json` told of."""
        return cls(**{**told, "at": datetime.fromisoformat(told["at"])})


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
    started: datetime
    ended: datetime | None
    state: str
    lasted: timedelta | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as JSON values."""
        return {
            "number": self.number,
            "started": self.started.isoformat(),
            "ended": None if self.ended is None else self.ended.isoformat(),
            "state": self.state,
            "lasted_s": None if self.lasted is None else round(self.lasted.total_seconds(), 3),
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> JobAttempt:
        """Return the attempt that `to_json` told of."""
        ended, lasted = told["ended"], told["lasted_s"]
        return cls(
            number=int(told["number"]),
            started=datetime.fromisoformat(told["started"]),
            ended=None if ended is None else datetime.fromisoformat(ended),
            state=str(told["state"]),
            lasted=None if lasted is None else timedelta(seconds=lasted),
            reason=str(told["reason"]),
        )


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

    def to_json(self) -> dict[str, Any]:
        """Return both as JSON values."""
        return {
            "job": self.job,
            "failures": [each.to_json() for each in self.failures],
            "attempts": [each.to_json() for each in self.attempts],
            "total": self.total,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Exceptions:
        """Return what `to_json` told of."""
        return cls(
            job=str(told["job"]),
            failures=tuple(JobFailure.from_json(each) for each in told["failures"]),
            attempts=tuple(JobAttempt.from_json(each) for each in told["attempts"]),
            total=int(told["total"]),
        )


def list_exceptions(
    root: Path, job: str, *, limit: int = DEFAULT_LIMIT, clock: Clock | None = None
) -> Exceptions:
    """Return why attempts of a job failed and which attempts there were.

    Args:
        limit: How many failures and how many attempts at most.
    """
    home = get_home(root, job, verb="list the exceptions of")
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
    return Exceptions(job, tuple(failures), tuple(attempts[::-1]), counts.kinds["FAILURE"])


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


def _attempts(states: Iterable[JobEvent], home: JobHome, clock: Clock) -> list[JobAttempt]:
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
