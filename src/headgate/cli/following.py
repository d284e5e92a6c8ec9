"""A job on a server: shown while it runs, like a local one."""

from __future__ import annotations

import time
from datetime import timedelta

import typer

from headgate._codec import decode
from headgate.cli.failures import INTERRUPTED
from headgate.cli.output import note, print_json, visible
from headgate.cli.running import print_summary, tell_detached, warn
from headgate.cli.status import start_line, terminal_watcher
from headgate.client.home import Home
from headgate.errors import Domain, HeadgateError
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.startup.background import Detached
from headgate.jobs.values import JobSnapshot
from headgate.jobs.views.job import JobView

_LOOK_EVERY = timedelta(seconds=1)


def show_started(place: Home, started: Detached, *, detach: bool, as_json: bool) -> None:
    """Print a job that was started on a server: its name, or its status until it ends.

    Raises:
        HeadgateError: The error of the job.
        typer.Exit: With the code of an interrupt, if the job was cancelled.
    """
    if detach:
        tell_detached(started, as_json=as_json)
        return
    first = started.snapshot
    if not as_json:
        note(start_line(first))
        warn(first.notice)
    try:
        ended = _follow(place, first, as_json=as_json)
    except KeyboardInterrupt:
        # Ctrl-C ends only this view: the job belongs to the server.
        if not as_json:
            name = started.job
            note(f"Job '{name}' continues at {place.where}; headgate stop {name} ends it")
        return
    if as_json:
        print_json(ended)
    else:
        print_summary(ended)
    if ended.state is JobState.CANCELED:
        raise typer.Exit(INTERRUPTED)


def _follow(place: Home, first: JobSnapshot, *, as_json: bool) -> JobSnapshot:
    """Show a job until it ends, and return how it ended."""
    with terminal_watcher(as_json=as_json) as shown:
        shown.on_snapshot(first)
        while True:
            view = place.job(first.job)
            if view.is_alive:
                shown.on_snapshot(decode(JobSnapshot, view.status))
            elif view.is_final:
                ended = decode(JobSnapshot, view.status)
                shown.on_snapshot(ended)
                break
            else:
                raise _died(view)
            time.sleep(_LOOK_EVERY.total_seconds())
    if ended.state is JobState.FAILED:
        raise _failed(view)
    return ended


def _failed(view: JobView) -> HeadgateError:
    failure = view.status.get("last_failure") or {}
    domain = failure.get("domain")
    return HeadgateError(
        str(failure.get("code") or "JOB_ENDED"),
        visible(str(failure.get("message") or view.reason)),
        hint=str(failure.get("hint") or f"headgate show {view.name}"),
        domain=Domain(domain) if domain in tuple(Domain) else Domain.INTERNAL,
        root_cause=str(failure.get("root_cause") or ""),
    )


def _died(view: JobView) -> HeadgateError:
    return HeadgateError(
        "JOB_ENDED",
        f"cannot follow job {view.name!r}: it is {view.state} ({view.reason})",
        hint=f"headgate start {view.name}",
        domain=Domain.EXTERNAL,
    )
