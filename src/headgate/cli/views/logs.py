"""The command that shows a job's logs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from headgate.cli.parts.options import Follow, Lines
from headgate.cli.parts.output import note, plural, stdout, visible
from headgate.cli.parts.place import Job, Place
from headgate.jobs.views.log_search import LineFilter, LogFilter, LogLevel
from headgate.jobs.views.logs import Log

Executor = Annotated[
    str | None,
    typer.Option("--executor", metavar="ID", help="Output of an executor on this machine."),
]


def logs(
    job: Job,
    *,
    lines: Lines = 50,
    follow: Follow = False,
    driver: Annotated[
        bool, typer.Option("--driver", help="Output of the driver's process.")
    ] = False,
    supervisor: Annotated[
        bool, typer.Option("--supervisor", help="Output of the supervisor of a detached job.")
    ] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Events of the job and its topics, as JSON.")
    ] = False,
    executor: Executor = None,
    text: Annotated[
        str,
        typer.Option(
            "--grep", metavar="TEXT", help="Lines with a text, searched in the whole log."
        ),
    ] = "",
    level: Annotated[
        LogLevel | None,
        typer.Option("--level", help="Entries of Spark's log of at least this level."),
    ] = None,
    place: Place,
) -> None:
    """Print the last lines of a job's log: by default Spark's.

    --grep and --level search the whole log with its rolled files, and print the last lines that
    match. Upper and lower case do not matter.

    [bold]Examples[/bold]

      headgate logs order-enrichment -n 100
      headgate logs order-enrichment -f --level warn
      headgate logs order-enrichment --grep OutOfMemory
      headgate logs order-enrichment --supervisor
      headgate logs order-enrichment --executor 0
    """
    chosen = {Log.DRIVER: driver, Log.SUPERVISOR: supervisor, Log.EVENTS: events}
    named = [log for log, is_named in chosen.items() if is_named]
    named += [] if executor is None else [Log.EXECUTOR]
    if len(named) > 1:
        options = " and ".join(f"--{log}" for log in named)
        raise typer.BadParameter(f"{options} are {len(named)} logs; choose one", place.context)
    log = named[0] if named else Log.SPARK
    wanted = LogFilter(text=text, level=level)
    if wanted.is_empty:
        read = place.home.follow_log if follow else place.home.tail_log
        print_log(read(job, log, last=lines, executor=executor), follow=follow)
        return
    matches = place.home.search_log(job, log, wanted, last=lines, executor=executor)
    print_log((line.encode() for line in matches.lines), follow=False)
    if follow:
        keeps = LineFilter(wanted).keeps
        new = place.home.follow_log(job, log, last=0, executor=executor)
        print_log((line for line in new if keeps(line)), follow=True)
    elif matches.total > len(matches.lines):
        note(f"{plural(matches.total, 'line')} match; --lines {matches.total} prints all")


def print_log(lines: Iterable[bytes], *, follow: bool) -> None:
    """Print the lines of a log; with `--follow`, Ctrl-C ends it without an error."""
    try:
        for line in lines:
            _print(line)
            if follow:
                sys.stdout.flush()
    except KeyboardInterrupt:
        if not follow:
            raise


def _print(line: bytes) -> None:
    if stdout().is_terminal:
        text = line.decode("utf-8", errors="backslashreplace")
        sys.stdout.write(visible(text) + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(line + b"\n")
