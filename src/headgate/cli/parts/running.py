"""A job started from the terminal: shown while it runs, here or on a server, or left alone."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import typer

from headgate._codec import decode
from headgate._units import format_count, format_duration
from headgate.cli.parts.failures import INTERRUPTED
from headgate.cli.parts.output import Right, note, plural, print_table, say, show, visible, warn
from headgate.cli.parts.status import start_line, terminal_watcher
from headgate.client.home import Home
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.flow_file import LoadedFlow
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.startup.background import Detached, start_detached
from headgate.jobs.values import JobSnapshot, RunOptions

_LOOK_EVERY = timedelta(seconds=1)
_ENDS = {JobState.FINISHED: "caught up", JobState.CANCELED: "was canceled"}


def show_detached(
    flow: str | LoadedFlow, options: RunOptions, *, as_json: bool, restore: SealedPlan | None = None
) -> None:
    """Start a job in the background, and print its name.

    Args:
        restore: What the start restores, as it was shown.
    """
    job = None if restore is None else restore.job
    progress = None if as_json else note
    started = start_detached(flow, options, job=job, restore=restore, progress=progress)
    tell_detached(started, as_json=as_json)


def tell_detached(started: Detached, *, as_json: bool) -> None:
    """Print the name of a background job, and the next commands."""
    show(started, _say_detached, as_json=as_json)


def _say_detached(started: Detached) -> None:
    say(started.job)
    note(f"Job '{started.job}' is STARTING in the background, as process {started.pid}")
    if started.snapshot.notice:
        warn(started.snapshot.notice)
    note(f"headgate show {started.job} shows its status; headgate stop {started.job} ends it")


def show_run(
    flow: str | LoadedFlow,
    options: RunOptions,
    *,
    as_json: bool,
    watch: bool = False,
    restore: SealedPlan | None = None,
) -> JobSnapshot:
    """Run a job with a live status, and print its result.

    Args:
        watch: Run it again each time the flow's file changes.
        restore: What the start restores, as it was shown.

    Raises:
        typer.Exit: With the code of an interrupt, if the job was canceled.
    """
    begun = False

    with terminal_watcher(as_json=as_json) as shown:

        def tell(snapshot: JobSnapshot) -> None:
            nonlocal begun
            if not begun and not as_json:
                begun = True
                _say_start(snapshot)
            shown.on_snapshot(snapshot)

        def tell_notice(line: str) -> None:
            note(visible(line))

        def tell_change(line: str) -> None:
            nonlocal begun
            begun = False
            note(line)

        watcher = replace(shown, on_snapshot=tell, on_notice=tell_notice)
        if watch:
            assert isinstance(flow, str), "a watched flow has a file"
            from headgate.jobs.startup.watched_flow import run_watched

            ended = run_watched(flow, options, watcher, say=tell_change)
        else:
            from headgate.jobs.startup.foreground import run_job

            ended = run_job(flow, options, watcher, restore=restore)
    _show_end(ended, as_json=as_json)
    return ended


def _say_start(first: JobSnapshot) -> None:
    note(start_line(first))
    if first.notice:
        warn(first.notice)


def _show_end(ended: JobSnapshot, *, as_json: bool) -> None:
    show(ended, _print_summary, as_json=as_json)
    if ended.state is JobState.CANCELED:
        raise typer.Exit(INTERRUPTED)


def _print_summary(ended: JobSnapshot) -> None:
    totals = ended.totals
    end = _ENDS.get(ended.state, "was stopped")
    elapsed = timedelta(milliseconds=round(ended.elapsed.total_seconds() * 10) * 100)
    batches = plural(totals.batches, "batch", "es")
    say(f"Job '{ended.job}' {end} after {format_duration(elapsed)}, {batches}")
    rows = [
        (head, name, format_count(count))
        for head, counts in (
            ("in", totals.inputs),
            ("out", totals.outputs),
            ("state", totals.state_rows),
        )
        for name, count in sorted(counts.items())
    ]
    if rows:
        print_table(("", "topic or operator", Right("records")), rows)


def show_started(home: Home, started: Detached, *, detach: bool, as_json: bool) -> None:
    """Print a job that was started on a server: its name, or its status until it ends.

    Raises:
        HeadgateError: The error of the job.
        typer.Exit: With the code of an interrupt, if the job was canceled.
    """
    if detach:
        tell_detached(started, as_json=as_json)
        return
    if not as_json:
        _say_start(started.snapshot)
    try:
        ended = _follow(home, started.snapshot, as_json=as_json)
    except KeyboardInterrupt:
        # Ctrl-C ends only this view: the job belongs to the server.
        if not as_json:
            name = started.job
            note(f"Job '{name}' continues at {home.where}; headgate stop {name} ends it")
        return
    _show_end(ended, as_json=as_json)


def _follow(home: Home, first: JobSnapshot, *, as_json: bool) -> JobSnapshot:
    """Show a job until it ends, and return how it ended."""
    with terminal_watcher(as_json=as_json) as shown:
        shown.on_snapshot(first)
        while True:
            view = home.job(first.job)
            if view.is_alive:
                shown.on_snapshot(decode(JobSnapshot, view.status))
            elif view.is_final:
                ended = decode(JobSnapshot, view.status)
                shown.on_snapshot(ended)
                break
            else:
                raise view.dead()
            time.sleep(_LOOK_EVERY.total_seconds())
    if ended.state is JobState.FAILED:
        raise _visible(view.failure())
    return ended


def _visible(error: HeadgateError) -> HeadgateError:
    """Return an error of a server without control characters in its message."""
    return HeadgateError.from_json({**error.to_json(), "message": visible(error.message)})
