"""The command that shows a job's logs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.job_options import Job
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import stdout, visible
from headgate.cli.place import open_home
from headgate.jobs.values import DEFAULT_HOME
from headgate.jobs.views.logs import Log, follow_log, tail_log


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("logs")(_logs)


def _logs(
    context: typer.Context,
    job: Job,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of lines.")] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines until Ctrl-C.")
    ] = False,
    driver: Annotated[
        bool, typer.Option("--driver", help="Output of the driver's process.")
    ] = False,
    supervisor: Annotated[
        bool, typer.Option("--supervisor", help="Output of the supervisor of a detached job.")
    ] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Events of the job and its topics, as JSON.")
    ] = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,  # noqa: ARG001 - errors are JSON then; lines are what they are
) -> None:
    """Print the last lines of a job's log: by default Spark's.

    [bold]Examples[/bold]

      headgate logs order-enrichment -n 100
      headgate logs order-enrichment -f
      headgate logs order-enrichment --supervisor
    """
    chosen = {Log.DRIVER: driver, Log.SUPERVISOR: supervisor, Log.EVENTS: events}
    named = [log for log, is_named in chosen.items() if is_named]
    if len(named) > 1:
        options = " and ".join(f"--{log}" for log in named)
        raise typer.BadParameter(f"{options} are {len(named)} logs; choose one", context)
    log = named[0] if named else Log.SPARK
    place = open_home(context, home, server, token_file)
    if follow:
        _print_new(place.follow_log(job, log, last=lines))
    else:
        _print_all(place.tail_log(job, log, last=lines))


def show_log(file: Path, *, lines: int, follow: bool) -> None:
    """Print the last lines of a log, and with --follow new ones until Ctrl-C."""
    if follow:
        _print_new(follow_log(file, last=lines))
    else:
        _print_all(tail_log(file, last=lines))


def _print_all(lines: Iterable[bytes]) -> None:
    for line in lines:
        _print(line)


def _print_new(lines: Iterable[bytes]) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        for line in lines:
            _print(line)
            sys.stdout.flush()


def _print(line: bytes) -> None:
    if stdout().is_terminal:
        text = line.decode("utf-8", errors="backslashreplace")
        sys.stdout.write(visible(text) + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(line + b"\n")
