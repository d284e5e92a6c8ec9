"""The command on state: operators, the value of a key, its history, rows and SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import typer
from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.parts.output import Right, format_time, note, print_table, say, visible
from headgate.cli.parts.place import Job, Place, complete_checkpoint
from headgate.jobs.state.values import (
    HistoryEntry,
    StateHistory,
    StateOverview,
    StateRows,
    StateValue,
)

_MOST_ROWS = 1000


_Uid: TypeAlias = Annotated[str | None, typer.Argument(metavar="UID", help="The operator's uid.")]
_Key: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help='A key: 42, abc, or for several columns {"a": 1, "b": 2} or [1, 2].',
    ),
]
_At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="ID",
        help="Read chk-17, LINEAGE/chk-17 of an earlier run, a savepoint's name, or latest; by "
        "default now.",
        autocompletion=complete_checkpoint,
    ),
]
_History: TypeAlias = Annotated[
    bool, typer.Option("--history", help="Show the key at every retained checkpoint, and now.")
]
_Rows: TypeAlias = Annotated[
    int | None, typer.Option("--rows", metavar="N", help="Number of rows to show.", min=1)
]
_Sql: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="A query over the view state, or views named after uids, such as with_user.",
    ),
]


def state(
    job: Job,
    uid: _Uid = None,
    *,
    key: _Key = None,
    at: _At = None,
    history: _History = False,
    rows: _Rows = None,
    sql: _Sql = None,
    place: Place,
) -> None:
    """Show a job's state: its operators, the value of a key, rows, or the result of a query.

    The job may be running, and is not disturbed. A separate process reads the values; the first
    request starts it, and it exits after 10 idle minutes.

    [bold]Examples[/bold]

      headgate state order-enrichment
      headgate state order-enrichment with-user --key 42
      headgate state order-enrichment with-user --key 42 --at chk-17
      headgate state order-enrichment with-user --key 42 --history
      headgate state order-enrichment with-user --rows 50
      headgate state order-enrichment with-user --sql "select count(*) from state"
    """
    no_operator = "name the operator: headgate state JOB lists the operators"
    place.refuse(
        {
            "use --key, or --rows or --sql": key is not None and (rows or sql) is not None,
            "--history needs a key: --key 42": history and key is None,
            "--history covers every checkpoint: omit --at": history and at is not None,
            no_operator: uid is None and (key is not None or (rows is not None and sql is None)),
        }
    )
    home = place.home
    if sql is not None:
        limit = rows or _MOST_ROWS
        place.show(home.state.query(job, sql, uid=uid, at=at, limit=limit), _print_rows)
    elif uid is None:
        place.show(home.operators(job, at=at), _print_overview)
    elif key is None:
        place.show(home.state.first_rows(job, uid, at=at, limit=rows or 50), _print_rows)
    elif history:
        place.show(home.state.history(job, uid, key), _print_history)
    else:
        place.show(home.state.look_up(job, uid, key, at=at), _print_value)


def _print_overview(shown: StateOverview) -> None:
    if not shown.operators:
        say(f"No operator of job '{shown.job}' holds state")
        return
    print_table(
        ["operator", "kind", "state", "key", Right("rows"), Right("size")],
        [
            [
                operator.uid,
                operator.kind,
                ", ".join(operator.variables),
                ", ".join(map(" ".join, zip(operator.keys, operator.key_types, strict=True)))
                or "-",
                format_count(operator.rows),
                format_size(operator.bytes),
            ]
            for operator in shown.operators
        ],
    )
    note(f"as of {_of(shown.checkpoint, shown.moment)}")


def _print_value(shown: StateValue) -> None:
    if shown.found:
        say(visible_json(shown.value))
    elif shown.deleted:
        say(f"key {visible(shown.key)} was deleted")
    else:
        say(f"no value is stored under key {visible(shown.key)}")
    note(f"as of {_of(shown.checkpoint, shown.moment)}")


def _print_history(shown: StateHistory) -> None:
    if shown.left_off:
        note(f"{format_count(shown.left_off)} older checkpoints are not shown")
    for entry in shown.entries:
        style = {"deleted": "red", "changed": "yellow", "unreadable": "red"}.get(entry.change, "")
        head = Text(f"{entry.checkpoint:<12}{format_time(entry.moment)} UTC  ")
        say(head.append(entry.change, style=style))
        for line in _lines(entry):
            say(f"  {line}")


def _lines(entry: HistoryEntry) -> Iterable[str]:
    match entry.change:
        case "first" | "appeared":
            yield _short(entry.value)
        case "changed":
            for name, (old, new) in entry.differences.items():
                yield f"{visible(name)}: {_short(old)} -> {_short(new)}"
        case "unreadable":
            yield visible(entry.problem)


def _short(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))


def _print_rows(shown: StateRows) -> None:
    print_table(
        [*map(visible, shown.columns)], [[_cell(value) for value in row] for row in shown.rows]
    )
    more = ", and more exist" if shown.cut else ""
    note(f"{format_count(len(shown.rows))} rows{more}, as of {_of(shown.checkpoint, shown.moment)}")


def _cell(value: Any) -> str:
    return visible(value) if isinstance(value, str) else _short(value)


def visible_json(value: Any) -> str:
    """Return a value as JSON on several lines, with control characters made visible."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    return "\n".join(map(visible, lines))


def _of(checkpoint: str, moment: datetime | None) -> str:
    return checkpoint if moment is None else f"{checkpoint}, {format_time(moment)} UTC"
