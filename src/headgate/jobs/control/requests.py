"""Requests to a job's supervisor, and waiting for their effect, from any process.

A request is an intent in the job's folder; its effect is read from the job's status and events.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate._units import format_duration
from headgate.errors import Domain, HeadgateError
from headgate.jobs.event_files import EVENTS, count_events, lines_since
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import find_echo, find_intent, write_intent
from headgate.jobs.lifecycle.machine import Machine, step
from headgate.jobs.lifecycle.restart import parse_strategy
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb, Wanted
from headgate.jobs.views.job import JobView, view_job

LONGEST_WAIT = timedelta(minutes=10)
_LOOK_EVERY = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a verb waits for its effect.

    Attributes:
        longest: After this time the verb gives up; the request stays valid.
        on_wait: Called with the job and the time waited, again and again.
    """

    longest: timedelta = LONGEST_WAIT
    on_wait: Callable[[JobView, timedelta], None] = lambda _view, _waited: None
    clock: Clock = field(default_factory=SystemClock)

    def gave_up(self, view: JobView, verb: str) -> HeadgateError:
        """Return the error of a verb that gives up."""
        return HeadgateError(
            "WAITED_TOO_LONG",
            f"cannot wait any longer for job {view.name!r} to {verb}: after "
            f"{format_duration(self.longest)} it is {view.state}; the request stays valid",
            hint=f"headgate show {view.name}",
            retryable=True,
        )


class Request:
    """One intent, and its effect."""

    def __init__(self, home: JobFolder, verb: Verb, patience: Patience | None) -> None:
        check_running(home, verb=verb.value)
        patience = patience or Patience()
        self._home = home
        self._verb = verb
        self._patience = patience
        self._number = 0
        self._events = count_events(self._home.path / EVENTS).lines
        self._began = patience.clock.monotonic()

    def send(self, **arguments: Any) -> None:
        """Write the intent, and wait until the supervisor has read it."""
        self._number = write_intent(self._home, self._verb, arguments, by=_user())
        self._look_until(self._is_echoed)

    def send_or_raise(self, **arguments: Any) -> None:
        """Write the intent, wait until the supervisor has read it, and raise its refusal."""
        self.send(**arguments)
        refusal = self.find_refusal()
        if refusal is not None:
            raise refusal

    def wait_for(self, reached: Callable[[JobView], bool]) -> JobView:
        """Wait until the job has reached a condition."""
        view = self._look_until(lambda view: reached(view) or not view.is_alive)
        if not reached(view):
            raise ended_otherwise(view, self._verb.value)
        return view

    def wait_for_end(self, state: JobState) -> JobView:
        """Wait until no process holds the job, and refuse another final state."""
        view = self._look_until(lambda view: not view.is_alive)
        if view.state != state:
            raise ended_otherwise(view, self._verb.value)
        return view

    def find_refusal(self) -> HeadgateError | None:
        """Return the supervisor's refusal of this intent, or None."""
        status = self._home.find_json("status.json") or {}
        error = status.get("intent_error")
        if not error or status.get("intent") != self._number:
            return None
        return HeadgateError(error["code"], error["message"], hint=error["hint"])

    def wait_for_event(self, *kinds: str) -> dict[str, Any]:
        """Wait for the first event of these kinds since the supervisor read the intent.

        Raises:
            HeadgateError: The supervisor's refusal, or JOB_ENDED if no process holds the job.
        """
        view = self._look_until(lambda view: bool(self._events_of(kinds)) or not view.is_alive)
        events = self._events_of(kinds)
        if not events:
            raise self.find_refusal() or ended_otherwise(view, self._verb.value)
        return events[0]

    def find_last_event(self, *kinds: str) -> dict[str, Any] | None:
        """Return the last event of these kinds since the supervisor read the intent, or None."""
        return next(reversed(self._events_of(kinds)), None)

    def _events_of(self, kinds: Collection[str]) -> list[dict[str, Any]]:
        """Return the events of these kinds after the intent, oldest first."""
        lines = lines_since(self._home.path / EVENTS, self._events)
        events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        for place, event in enumerate(events):
            if event["event"] == "INTENT" and event["number"] == self._number:
                events = events[place:]
                break
        return [event for event in events if event["event"] in kinds]

    def _is_echoed(self, view: JobView) -> bool:
        if int(view.status.get("intent") or 0) >= self._number:
            return True
        if view.is_alive:
            return False
        if view.is_final:
            raise not_running(self._verb.value, view)
        raise ended_otherwise(view, self._verb.value)

    def _look_until(self, is_done: Callable[[JobView], bool]) -> JobView:
        patience = self._patience
        while True:
            view = view_job(self._home, clock=patience.clock)
            if is_done(view):
                return view
            waited = timedelta(seconds=patience.clock.monotonic() - self._began)
            if waited >= patience.longest:
                raise patience.gave_up(view, self._verb.value)
            patience.on_wait(view, waited)
            patience.clock.sleep(_LOOK_EVERY)


def check_running(home: JobFolder, *, verb: str) -> JobView:
    """Return a running job, or raise JOB_NOT_RUNNING."""
    view = view_job(home)
    if not view.is_alive:
        raise not_running(verb, view)
    return view


def check_request(home: JobFolder, verb: Verb) -> JobView:
    """Return a running job that can pause or resume, or raise the refusal of its supervisor.

    While the supervisor has not read an earlier request, it alone can decide.
    """
    intent = find_intent(home)
    # Read before the state: a request that is read in between shows in the state.
    is_pending = intent is not None and intent.number > find_echo(home)
    view = check_running(home, verb=verb.value)
    if is_pending or view.state not in [*JobState]:
        return view
    now = SystemClock().now()
    job = Machine(
        job=home.name,
        strategy=parse_strategy("none"),
        state=JobState(view.state),
        held=bool(view.status.get("held")),
        started_at=now,
    )
    step(job, Wanted(now, verb))
    return view


def check_at_rest(home: JobFolder, *, verb: str) -> JobView:
    """Return a job that is not running, or raise JOB_RUNNING."""
    view = view_job(home)
    if view.is_alive:
        raise HeadgateError(
            "JOB_RUNNING",
            f"cannot {verb} job {home.name!r}: it is {view.state}",
            hint=f"headgate stop {home.name}",
        )
    return view


def not_running(verb: str, view: JobView) -> HeadgateError:
    return HeadgateError(
        "JOB_NOT_RUNNING",
        f"cannot {verb} job {view.name!r}: it is not running, it is {view.state}",
        hint=f"headgate start {view.name}",
    )


def ended_otherwise(view: JobView, verb: str) -> HeadgateError:
    """Return the error of a verb whose job ended in another state."""
    why = f" ({view.reason})" if view.reason else ""
    return HeadgateError(
        "JOB_ENDED",
        f"cannot {verb} job {view.name!r}: it ended meanwhile and is {view.state}{why}",
        hint=f"headgate show {view.name}",
        domain=Domain.EXTERNAL,
    )


def _user() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"user {os.getuid()}"
    return f"{user} (process {os.getpid()})"
