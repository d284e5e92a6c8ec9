"""A job started from the terminal: shown while it runs, or left in the background."""

from __future__ import annotations

from datetime import timedelta

import typer
from rich.text import Text

from headgate._units import format_count, format_duration
from headgate.cli.failures import INTERRUPTED
from headgate.cli.output import Right, note, print_json, print_table, say, visible
from headgate.cli.status import start_line, terminal_watcher
from headgate.jobs.checkpoints.restore_plan import SealedPlan
from headgate.jobs.flow_file import LoadedFlow
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.startup.background import Detached, start_detached
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher


def show_detached(
    flow: str, options: RunOptions, *, as_json: bool, restore: SealedPlan | None = None
) -> None:
    """Start a job in the background, and print its name.

    Args:
        restore: What the start restores, as it was shown.
    """
    job = None if restore is None else restore.job
    started = start_detached(flow, options, job=job, restore=restore)
    tell_detached(started, as_json=as_json)


def tell_detached(started: Detached, *, as_json: bool) -> None:
    """Print the name of a background job, and the next commands."""
    if as_json:
        print_json(started)
        return
    say(started.job)
    note(f"Job '{started.job}' is STARTING in the background, as process {started.pid}")
    warn(started.snapshot.notice)
    note(f"headgate show {started.job} shows its status; headgate stop {started.job} ends it")


def warn(notice: str) -> None:
    """Print a warning about a start, such as a corrupted checkpoint."""
    if notice:
        note(Text.assemble(("warning", "bold yellow"), f": {visible(notice)}"))


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
        typer.Exit: With the code of an interrupt, if the job was cancelled.
    """
    begun = False

    with terminal_watcher(as_json=as_json) as shown:

        def tell(snapshot: JobSnapshot) -> None:
            nonlocal begun
            if not begun and not as_json:
                begun = True
                note(start_line(snapshot))
                warn(snapshot.notice)
            shown.on_snapshot(snapshot)

        def tell_notice(line: str) -> None:
            note(visible(line))

        def tell_change(line: str) -> None:
            nonlocal begun
            begun = False
            note(line)

        watcher = Watcher(on_snapshot=tell, on_row=shown.on_row, on_notice=tell_notice)
        if watch:
            reference = flow if isinstance(flow, str) else flow.reference
            from headgate.jobs.startup.watched_flow import run_watched

            ended = run_watched(reference, options, watcher, told=tell_change)
        else:
            from headgate.jobs.startup.foreground import run_job

            ended = run_job(flow, options, watcher, restore=restore)
    if as_json:
        print_json(ended)
    else:
        print_summary(ended)
    if ended.state is JobState.CANCELED:
        raise typer.Exit(INTERRUPTED)
    return ended


_ENDS = {JobState.FINISHED: "caught up", JobState.CANCELED: "was cancelled"}


def print_summary(ended: JobSnapshot) -> None:
    """Print the counts of an ended job."""
    totals = ended.totals
    word = _ENDS.get(ended.state, "was stopped")
    batches = f"{format_count(totals.batches)} batch{'' if totals.batches == 1 else 'es'}"
    say(f"Job '{ended.job}' {word} after {format_duration(_rounded(ended))}, {batches}")
    rows = [("in", name, format_count(count)) for name, count in sorted(totals.inputs.items())]
    rows += [("out", name, format_count(count)) for name, count in sorted(totals.outputs.items())]
    rows += [
        ("state", name, format_count(count)) for name, count in sorted(totals.state_rows.items())
    ]
    if rows:
        print_table(("", "topic or operator", Right("records")), rows)


def _rounded(ended: JobSnapshot) -> timedelta:
    return timedelta(milliseconds=round(ended.elapsed.total_seconds() * 10) * 100)
