"""The verb that goes back to a checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate._units import format_count
from headgate.cli.following import show_started
from headgate.cli.job_options import Job
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import Right, print_json, print_table, say
from headgate.cli.place import find_server, refuse_with_server
from headgate.cli.running import show_detached, show_run
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME

_HELP = """Go back to a checkpoint or a savepoint, and run on from there.

The restored job is a new run with its own lineage: it reads again what came after the checkpoint,
and outputs receive those rows once more. The old run stays, and can be gone back to. --dry-run
says what would happen.

[bold]Examples[/bold]

  headgate restore order-enrichment --from chk-17

  headgate restore order-enrichment --at "10m ago" --dry-run

  headgate restore order-enrichment --from /backup/before-release
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("restore", help=_HELP)(_restore)


def _restore(
    context: typer.Context,
    job: Job,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="CHECKPOINT", help="chk-17, a savepoint's name or folder, or latest."
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="MOMENT", help="'2026-11-15 10:05' (local) or '10m ago'."),
    ] = None,
    drop_state: Annotated[
        list[str] | None,
        typer.Option("--drop-state", metavar="UID", help="Leave this operator's state behind."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, and do nothing.")
    ] = False,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End once all that is there has been read.")
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return at once; the job runs on.")
    ] = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    if source is not None and at is not None:
        raise typer.BadParameter("--from and --at exclude each other")
    remote = find_server(context, server, token_file)
    if remote is not None:
        refuse_with_server(context, "until_caught_up")
    drop = drop_state or ()
    if remote is not None and not dry_run:
        plan, started = remote.restore(job, source=source, at=at, drop=drop)
        if not as_json:
            print_plan(plan, as_json=False)
        show_started(remote, started, detach=detach, as_json=as_json)
        return
    folder = FolderHome(home)
    if dry_run:
        plan = (remote or folder).preview_restore(job, source=source, at=at, drop=drop)
        print_plan(plan, as_json=as_json)
        return
    start = folder.prepare_restore(job, source=source, at=at, drop=drop)
    options = start.options.with_end(until_caught_up=until_caught_up)
    with folder.hold_checkpoint(job, start.plan.folder):
        if not as_json:
            print_plan(start.plan, as_json=False)
        if detach:
            show_detached(start.flow.reference, options, as_json=as_json, restore=start.sealed)
        else:
            show_run(start.flow, options, as_json=as_json, restore=start.sealed)


def print_plan(plan: RestorePlan, *, as_json: bool) -> None:
    """Print what a restore does."""
    if as_json:
        print_json(plan)
        return
    complete = f"{plan.completed_at:%Y-%m-%d %H:%M:%S}"
    say(f"From {plan.kind} {plan.checkpoint}, complete at {complete} UTC")
    for uids, told in (
        (plan.state_taken, "keeps its state"),
        (plan.state_dropped, "leaves its state behind"),
        (plan.starts_empty, "starts empty"),
    ):
        for uid in uids:
            say(f"  {uid} {told}")
    rows = [
        (name, "cannot be told" if count is None else format_count(count))
        for name, count in plan.records_again.items()
    ]
    print_table(("source", Right("records read again")), rows)
    say(f"Outputs that receive those rows again: {', '.join(plan.outputs_with_repeats)}")
