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
from headgate.cli.bars import open_bars
from headgate.cli.job_options import Job, complete_checkpoint
from headgate.cli.options import Home, Json
from headgate.cli.output import Right, note, print_json, print_table, say, visible
from headgate.connectors.audit import AuditProgress
from headgate.jobs.audit.job_audit import AuditRequest
from headgate.jobs.audit.report import Audit
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME

_NOT_WELL = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit")(_audit)


_Key: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Compare these columns (a,b.c) instead of positions.",
        show_default=False,
    ),
]
_Source: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Audit only this stream of the flow.", show_default=False),
]
_Outputs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--output",
        metavar="ID",
        help="With --key: read only this output; may be repeated.",
        show_default=False,
    ),
]
_At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="CHECKPOINT",
        help="Audit up to this retained checkpoint instead of the last batch.",
        show_default=False,
        autocompletion=complete_checkpoint,
    ),
]
_Lineage: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="LINEAGE",
        help="Audit only this run, instead of the current one and its ancestors.",
        show_default=False,
    ),
]


def _audit(
    context: typer.Context,
    job: Job,
    key: _Key = None,
    source: _Source = None,
    outputs: _Outputs = None,
    at: _At = None,
    lineage: _Lineage = None,
    home: Home = DEFAULT_HOME,
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
    with _bars() as show:
        found = FolderHome(home).audit(job, request, progress=show)
    if as_json:
        print_json(found)
    else:
        _show(found)
    if not found.ok:
        raise typer.Exit(_NOT_WELL)


def _show(audit: Audit) -> None:
    by = f"by key {', '.join(audit.key)}" if audit.key else "by position"
    say(f"Job '{audit.job}', run {audit.lineage}, up to {audit.checkpoint}, {by}")
    say("")
    _show_sources(audit)
    say("")
    print_table(
        ["output", Right("rows"), Right("of other runs"), Right("without a mark")],
        [
            [name, *map(format_count, (each.rows, each.other_runs, each.foreign))]
            for name, each in audit.outputs.items()
        ],
    )
    if audit.examples:
        say("")
        for each in audit.examples:
            say(Text(f"{each.kind.value:<9}{visible(each.source)}  {visible(str(each))}"))
    say("")
    for line in audit.notes:
        note(f"note: {visible(line)}")
    say(Text(audit.verdict, style="green" if audit.ok else "bold red"))


def _show_sources(audit: Audit) -> None:
    counts = ("records", "written", "lost", "doubled", "unknown", "ahead")
    rows: list[list[str | Text]] = []
    for name, source in audit.sources.items():
        for number, each in source.partitions.items():
            told = encode(each)
            rows.append([name, number, *(_count(told[column]) for column in counts)])
    print_table(["source", Right("partition"), *map(Right, counts)], rows)


def _count(count: int | None) -> str:
    return "-" if count is None else format_count(count)


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
