"""`headgate formats` and `headgate topics peek`: formats, and records of any format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from headgate.cli.parts.options import Json, On
from headgate.cli.parts.output import note, print_table, show, stdout, visible
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.records.viewers import ShownRecord
from headgate.jobs.topics.formats import FormatView, list_formats, parse_format
from headgate.jobs.topics.peeking import peek_topic


def formats(as_json: Json = False) -> None:
    """List the formats of records that flows can read and write.

    [bold]Examples[/bold]

      headgate formats
      headgate formats --json | jq '.[] | select(.name == "csv").options'
    """
    show(list_formats(), _print_formats, as_json=as_json)


def _print_formats(listed: Sequence[FormatView]) -> None:
    print_table(
        ["format", "use", "on brokers", "embedded", "options", "what a record is"],
        [
            [
                form.name,
                " and ".join(["read"] * form.reads + ["write"] * form.writes),
                form.on_brokers,
                form.embedded,
                ", ".join(option.name for option in form.options) or "-",
                form.description,
            ]
            for form in listed
        ],
    )


def peek(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")],
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Format of the records.")
    ] = "json",
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Option of the format, as headgate formats --json lists them; repeatable.",
        ),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option("--registry", metavar="URL", help="Schema registry of the format."),
    ] = None,
    last: Annotated[
        int, typer.Option("-n", "--lines", metavar="N", min=0, help="Number of records.")
    ] = 10,
    on: On = DEFAULT_LOG,
    as_json: Json = False,
) -> None:
    """Print the last records of a topic decoded, one per line.

    A record that cannot be decoded is printed with its bytes escaped, and the reason on standard
    error.

    [bold]Examples[/bold]

      headgate topics peek orders
      headgate topics peek readings --format csv --option columns=sensor,value --option delimiter=;
      headgate topics peek blobs --format raw --on kafka://localhost:9092
      headgate topics peek orders --format avro --registry http://localhost:8081 --on pulsar://localhost:6650
    """
    given = [*(options or ()), *([] if registry is None else [f"registry={registry}"])]
    found = peek_topic(on, name, parse_format(form, given), last=last)
    show(found, _print_records, as_json=as_json)


def _print_records(records: Sequence[ShownRecord]) -> None:
    console = stdout()
    for record in records:
        text = visible(record.text)
        if console.is_terminal:
            console.print(text, soft_wrap=True, markup=False, highlight=False)
        else:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        if record.problem:
            note(f"the record above cannot be decoded: {visible(record.problem)}")
