"""The command that goes back to a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from headgate._units import format_count
from headgate.cli.parts.output import Right, format_time, print_table, say, warn
from headgate.cli.parts.place import Job, Place, refuse_with_server
from headgate.cli.parts.running import show_detached, show_run, show_started
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.restore_start import RestoreStart


def restore(
    job: Job,
    *,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CHECKPOINT",
            help="chk-17, LINEAGE/chk-17 of an earlier run, a savepoint's name, folder or address, "
            "or latest.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="MOMENT", help="'2026-11-15 10:05' (local) or '10m ago'."),
    ] = None,
    drop_state: Annotated[
        list[str] | None,
        typer.Option("--drop-state", metavar="UID", help="Drop this operator's state."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would happen, and do nothing.")
    ] = False,
    until_caught_up: Annotated[
        bool,
        typer.Option("--until-caught-up", help="End once all existing records have been read."),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return at once; the job runs in the background.")
    ] = False,
    place: Place,
) -> None:
    """Go back to a checkpoint or a savepoint, and continue from there.

    The restored job is a new run with its own lineage. It reads the records after the checkpoint
    again, and writes their rows to its outputs once more. The old run is kept and can be restored,
    too. --dry-run shows what would happen.

    [bold]Examples[/bold]

      headgate restore order-enrichment --from chk-17
      headgate restore order-enrichment --at "10m ago" --dry-run
      headgate restore order-enrichment --from /backup/before-release
    """
    place.refuse({"--from and --at exclude each other": None not in (source, at)})
    if place.server is not None:
        refuse_with_server(place.context, "until_caught_up")
    drop = drop_state or ()
    if dry_run:
        place.show(place.home.preview_restore(job, source=source, at=at, drop=drop), _print_plan)
    elif place.server is not None:
        plan, started = place.server.restore(job, source=source, at=at, drop=drop)
        if not place.as_json:
            _print_plan(plan)
        show_started(place.server, started, detach=detach, as_json=place.as_json)
    else:
        start = place.local.prepare_restore(job, source=source, at=at, drop=drop)
        _restore_here(start, place, until_caught_up=until_caught_up, detach=detach)


def _restore_here(
    start: RestoreStart, place: Place, *, until_caught_up: bool, detach: bool
) -> None:
    options = start.options.with_end(until_caught_up=until_caught_up)
    with place.local.hold_checkpoint(start.sealed.job, start.plan.folder):
        if not place.as_json:
            # The run prints the warnings itself.
            _print_plan(replace(start.plan, warnings=()))
        as_json, plan = place.as_json, start.sealed
        if detach:
            show_detached(start.flow, options, as_json=as_json, restore=plan)
        else:
            show_run(start.flow, options, as_json=as_json, restore=plan)


def _print_plan(plan: RestorePlan) -> None:
    run = f" of run {plan.run}" if plan.run else ""
    when = f"complete at {format_time(plan.completed_at)} UTC"
    say(f"From {plan.kind} {plan.checkpoint}{run}, {when}")
    for uids, outcome in (
        (plan.state_taken, "keeps its state"),
        (plan.state_dropped, "leaves its state behind"),
        (plan.starts_empty, "starts empty"),
    ):
        for uid in uids:
            say(f"  {uid} {outcome}")
    rows = [(name, _again(plan, name)) for name in plan.records_again]
    print_table(("source", Right("records read again")), rows)
    say(f"Outputs that receive those rows again: {', '.join(plan.outputs_with_repeats)}")
    for warning in plan.warnings:
        warn(warning)


def _again(plan: RestorePlan, source: str) -> str:
    count = plan.records_again[source]
    if count is None:
        return "unknown"
    return f"{'about ' if source in plan.records_estimated else ''}{format_count(count)}"
