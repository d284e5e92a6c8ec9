"""The verb that runs a job."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from headgate._units import format_count, format_duration, parse_duration, parse_size
from headgate.cli.options import Home, Json, On
from headgate.cli.output import Right, note, print_json, print_table, say
from headgate.cli.status import start_line, terminal_watcher
from headgate.jobs.service import (
    DEFAULT_HOME,
    DEFAULT_LOG,
    JobSnapshot,
    JobState,
    RunOptions,
    Watcher,
    run_job,
)

_HELP = """Run a flow as a job, until Ctrl-C or until it has caught up.

A job that exists goes on from its newest checkpoint; --fresh starts it empty. Ctrl-C ends it
before its next batch, so that nothing is left half done. What Spark says goes to the job's
folder, .headgate/jobs/NAME/logs.

[bold]Examples[/bold]

  headgate run examples/orders/flow.py

  headgate run examples/orders/flow.py --until-caught-up --json

  headgate run flow.py --on files:/data/topics --batch-every 5s --parallelism 4
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run", help=_HELP)(_run)


def _run(
    flow: Annotated[
        str, typer.Argument(metavar="FLOW", help="A flow's file: flow.py, or flow.py:name.")
    ],
    on: On = DEFAULT_LOG,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End once all that is there has been read.")
    ] = False,
    parallelism: Annotated[
        int | None,
        typer.Option(
            "--parallelism", "-p", min=1, help="State partitions; as many as cores by default."
        ),
    ] = None,
    batch_every: Annotated[
        str, typer.Option("--batch-every", help="How often a batch begins; 0s: without a pause.")
    ] = "1s",
    max_batch: Annotated[
        str, typer.Option("--max-batch", help="What a batch reads of a topic at most.")
    ] = "64MiB",
    max_record: Annotated[
        str, typer.Option("--max-record", help="A larger record is a dead letter.")
    ] = "1MiB",
    driver_memory: Annotated[
        str, typer.Option("--driver-memory", help="Memory of Spark's driver.")
    ] = "2GiB",
    checkpoints: Annotated[
        Path | None,
        typer.Option("--checkpoints", metavar="DIR", help="Where the checkpoints of new runs go."),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Start empty, in a new run; the old one stays as it is."),
    ] = False,
    print_rows: Annotated[
        bool, typer.Option("--print", help="Show the first rows of each output and batch too.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show Spark's log on the terminal too.")
    ] = False,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    options = RunOptions(
        on=on,
        home=home,
        until_caught_up=until_caught_up,
        parallelism=parallelism,
        batch_every=parse_duration(batch_every),
        max_batch=parse_size(max_batch),
        max_record=parse_size(max_record),
        driver_memory=parse_size(driver_memory),
        checkpoints=checkpoints,
        fresh=fresh,
        print_rows=20 if print_rows else 0,
        verbose=verbose,
    )
    show_run(flow, options, as_json=as_json)


def show_run(flow: str, options: RunOptions, *, as_json: bool) -> JobSnapshot:
    """Run a job with a live status, and print what it did."""
    begun = False

    with terminal_watcher(as_json=as_json) as shown:

        def tell(snapshot: JobSnapshot) -> None:
            nonlocal begun
            if not begun and not as_json:
                begun = True
                note(start_line(snapshot))
            shown.on_snapshot(snapshot)

        ended = run_job(flow, options, Watcher(on_snapshot=tell, on_row=shown.on_row))
    if as_json:
        print_json(ended.to_json())
    else:
        print_summary(ended)
    return ended


def print_summary(ended: JobSnapshot) -> None:
    """Print the counts of a job that has ended."""
    totals = ended.totals
    word = "caught up" if ended.state is JobState.FINISHED else "was stopped"
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
