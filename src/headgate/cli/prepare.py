"""`headgate prepare`: downloads and other work of a job's first start, done in advance."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate._units import format_size
from headgate.cli.options import Json
from headgate.cli.output import Right, note, print_json, print_table
from headgate.jobs.host.preparation import Prepared, list_fetched, prepare


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("prepare")(_prepare)


def _prepare(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG",
            help="embedded, kafka, pulsar; kafka+pulsar for flows with both. By default embedded, "
            "and those whose jars are present.",
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Repeat it even if it was done before.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Halve the start time of jobs: archive the classes that Spark loads.

    Takes a minute or two, once per Java, Spark and release of headgate, and some 200 MB of disk per
    log; the jars of connectors are downloaded. Jobs find the archive by themselves. For a machine
    image, run it when the image is built.

    [bold]Examples[/bold]

      headgate prepare
      headgate prepare embedded kafka
    """
    progress = None if as_json else note
    made = prepare(logs or list_fetched(), again=again, progress=progress)
    if as_json:
        print_json(made)
        return
    print_table(["jobs on", Right("size"), Right("took"), "archive"], [_row(each) for each in made])


def _row(made: Prepared) -> list[str]:
    took = "was there" if made.took is None else f"{made.took.total_seconds():.0f} s"
    return [made.log, format_size(made.size), took, made.archive.name]
