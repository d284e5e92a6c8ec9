"""`headgate audit`: whether each record of a job is in its outputs as often as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import typer
from rich.progress import TaskID
from rich.text import Text

from headgate._codec import encode
from headgate._units import format_count
from headgate.cli.parts.options import HomeFolder, Json
from headgate.cli.parts.output import (
    Right,
    note,
    open_bars,
    or_dash,
    print_section,
    print_table,
    say,
    show,
    visible,
)
from headgate.cli.parts.place import Job, complete_checkpoint
from headgate.connectors.contract.audit import AuditProgress
from headgate.jobs.audit.job_audit import AuditRequest
from headgate.jobs.audit.report import Audit
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME

_NOT_WELL = 1


_Key: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="COLUMNS", help="Compare these columns (a,b.c) instead of positions."),
]
_Source: TypeAlias = Annotated[
    str | None, typer.Option(metavar="ID", help="Audit only this stream of the flow.")
]
_Outputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--output", metavar="ID", help="With --key: read only this output; may be repeated."
    ),
]
_At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="CHECKPOINT",
        help="Audit up to this retained checkpoint instead of the last batch.",
        autocompletion=complete_checkpoint,
    ),
]
_Lineage: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="LINEAGE", help="Audit only this run, instead of the current one and its ancestors."
    ),
]


def audit(
    context: typer.Context,
    job: Job,
    key: _Key = None,
    source: _Source = None,
    outputs: _Outputs = None,
    at: _At = None,
    lineage: _Lineage = None,
    home: HomeFolder = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Find lost and duplicated records: read a job's inputs and outputs, and compare them.

    Rows on Kafka name the record they came from. With --key the values of columns are compared, on
    any log. The job may be running. Exits with 1 if records are lost, or duplicated against the
    delivery guarantee.

    [bold]Examples[/bold]

      headgate audit order-enrichment
      headgate audit order-enrichment --key invoiceId,lineItemId
      headgate audit order-enrichment --at chk-17 --json
    """
    if outputs and key is None:
        raise typer.BadParameter("--output needs --key", context)
    request = AuditRequest(
        lineage=lineage,
        at=at,
        key=() if key is None else tuple(part.strip() for part in key.split(",")),
        source=source,
        outputs=tuple(outputs or ()),
    )
    with _bars() as progress:
        result = FolderHome(home).audit(job, request, progress=progress)
    show(result, _print_audit, as_json=as_json)
    if not result.ok:
        raise typer.Exit(_NOT_WELL)


def _print_audit(audit: Audit) -> None:
    by = f"by key {', '.join(audit.key)}" if audit.key else "by position"
    say(f"Job '{audit.job}', run {audit.lineage}, up to {audit.checkpoint}, {by}")
    say("")
    counts = ("records", "written", "lost", "doubled", "unknown", "ahead")
    rows: list[list[str]] = []
    for name, source in audit.sources.items():
        for number, partition in source.partitions.items():
            values = encode(partition)
            rows.append(
                [name, number, *(or_dash(values[column], format_count) for column in counts)]
            )
    print_table(["source", Right("partition"), *map(Right, counts)], rows)
    print_section(
        ["output", Right("rows"), Right("of other runs"), Right("without a mark")],
        [
            [name, *map(format_count, (output.rows, output.other_runs, output.foreign))]
            for name, output in audit.outputs.items()
        ],
    )
    if audit.examples:
        say("")
        for example in audit.examples:
            say(f"{example.kind.value:<9}{visible(example.source)}  {visible(str(example))}")
    say("")
    for line in audit.notes:
        note(f"note: {visible(line)}")
    say(Text(audit.verdict, style="green" if audit.ok else "bold red"))


@contextmanager
def _bars() -> Iterator[Callable[[AuditProgress], None]]:
    progress = open_bars("{task.description:<16}")
    tasks: dict[str, TaskID] = {}

    def show(latest: AuditProgress) -> None:
        if latest.topic not in tasks:
            tasks[latest.topic] = progress.add_task(latest.topic, total=latest.total)
        progress.update(tasks[latest.topic], completed=latest.done, total=latest.total)

    with progress:
        yield show
