"""The verb that shows a job's logs."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.job_options import Job
from headgate.cli.options import Home, Json
from headgate.cli.output import stdout, visible
from headgate.jobs.service import DEFAULT_HOME, Log, follow_log, get_log, tail_log


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("logs")(_logs)


def _logs(
    context: typer.Context,
    job: Job,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines.")] = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new lines until Ctrl-C.")
    ] = False,
    driver: Annotated[
        bool, typer.Option("--driver", help="What the driver's process printed.")
    ] = False,
    supervisor: Annotated[
        bool, typer.Option("--supervisor", help="What the supervisor of a detached job printed.")
    ] = False,
    events: Annotated[
        bool, typer.Option("--events", help="What happened to the job and its topics, as JSON.")
    ] = False,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,  # noqa: ARG001 - errors are JSON then; lines are what they are
) -> None:
    """Print the last lines of a job's log: Spark's, unless another is asked for.

    [bold]Examples[/bold]

      headgate logs order-enrichment -n 100
      headgate logs order-enrichment -f
      headgate logs order-enrichment --supervisor
    """
    chosen = {Log.DRIVER: driver, Log.SUPERVISOR: supervisor, Log.EVENTS: events}
    named = [log for log, is_named in chosen.items() if is_named]
    if len(named) > 1:
        told = " and ".join(f"--{log}" for log in named)
        raise typer.BadParameter(f"{told} are {len(named)} logs; name one", context)
    show_log(get_log(home, job, named[0] if named else Log.SPARK), lines=lines, follow=follow)


def show_log(file: Path, *, lines: int, follow: bool) -> None:
    """Print the last lines of a log, and where it is followed, new ones until Ctrl-C."""
    if not follow:
        for line in tail_log(file, last=lines):
            _print(line)
        return
    with contextlib.suppress(KeyboardInterrupt):
        for line in follow_log(file, last=lines):
            _print(line)
            sys.stdout.flush()


def _print(line: bytes) -> None:
    if stdout().is_terminal:
        text = line.decode("utf-8", errors="backslashreplace")
        sys.stdout.write(visible(text) + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(line + b"\n")
