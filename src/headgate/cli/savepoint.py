"""The command that takes savepoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headgate._units import format_count, format_size
from headgate.cli.job_options import DEFAULT_TIMEOUT, Job, Timeout, patience
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import print_json, say
from headgate.cli.place import open_home
from headgate.jobs.values import DEFAULT_HOME


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("savepoint")(_savepoint)


def _savepoint(
    context: typer.Context,
    job: Job,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Its folder, which must not exist; by default in the job's folder.",
        ),
    ] = None,
    portable: Annotated[
        bool,
        typer.Option(
            "--portable", help="Write state as Parquet files that any tool can read and change."
        ),
    ] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Take a savepoint of a job: a folder that can be moved and restored from anywhere.

    It holds the last committed batch. A running job continues; a stopped job stays stopped.
    Savepoints are never deleted automatically. A portable savepoint holds each operator's state as
    Parquet, by uid: rows can be changed, and the job can start from it with another parallelism.

    [bold]Examples[/bold]

      headgate savepoint order-enrichment
      headgate savepoint order-enrichment --to /backup/orders-before-upgrade
      headgate savepoint order-enrichment --portable --to /tmp/orders-state
    """
    place = open_home(context, home, server, token_file)
    waits = patience(timeout, as_json=as_json)
    if portable:
        made = place.take_portable_savepoint(job, to=to, patience=waits)
        if as_json:
            print_json(made)
        else:
            rows = ", ".join(f"{uid} {format_count(n)} rows" for uid, n in made.rows.items())
            say(f"Portable savepoint '{made.name}': {rows} in {made.folder}")
        return
    taken = place.take_savepoint(job, to=to, patience=waits)
    if as_json:
        print_json(taken)
    else:
        say(f"Savepoint '{taken.name}': {format_size(taken.bytes)} in {taken.folder}")
