"""The command on state: operators, the value of a key, its history, rows and SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, TypeAlias

import typer
from rich.text import Text

from headgate._units import format_count, format_size
from headgate.cli.job_options import Job, complete_checkpoint
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import Right, note, print_json, print_table, say, visible
from headgate.cli.place import open_home
from headgate.jobs.state.values import (
    HistoryEntry,
    StateHistory,
    StateOverview,
    StateRows,
    StateValue,
)
from headgate.jobs.values import DEFAULT_HOME

_MOST_ROWS = 1000


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("state")(_state)


_Uid: TypeAlias = Annotated[
    str | None,
    typer.Argument(metavar="UID", help="The operator's uid.", show_default=False),
]
_Key: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help='A key: 42, abc, or for several columns {"a": 1, "b": 2} or [1, 2].',
        show_default=False,
    ),
]
_At: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="ID",
        help="Read chk-17, a savepoint's name, or latest; by default now.",
        show_default=False,
        autocompletion=complete_checkpoint,
    ),
]
_History: TypeAlias = Annotated[
    bool, typer.Option("--history", help="Show the key at every retained checkpoint, and now.")
]
_Rows: TypeAlias = Annotated[
    int | None,
    typer.Option("--rows", metavar="N", help="Number of rows to show.", min=1, show_default=False),
]
_Sql: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="A query over the view state, or views named after uids, such as with_user.",
        show_default=False,
    ),
]


def _state(
    context: typer.Context,
    job: Job,
    uid: _Uid = None,
    key: _Key = None,
    at: _At = None,
    history: _History = False,
    rows: _Rows = None,
    sql: _Sql = None,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
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
    _check(context, uid=uid, key=key, at=at, history=history, rows=rows, sql=sql)
    found: StateOverview | StateValue | StateHistory | StateRows
    place = open_home(context, home, server, token_file)
    if sql is not None:
        found = place.state.query(job, sql, uid=uid, at=at, limit=rows or _MOST_ROWS)
    elif uid is None:
        found = place.operators(job, at=at)
    elif key is None:
        found = place.state.first_rows(job, uid, at=at, limit=rows or 50)
    elif history:
        found = place.state.history(job, uid, key)
    else:
        found = place.state.look_up(job, uid, key, at=at)
    if as_json:
        print_json(found)
    else:
        _show(found)


def _check(
    context: typer.Context,
    *,
    uid: str | None,
    key: str | None,
    at: str | None,
    history: bool,
    rows: int | None,
    sql: str | None,
) -> None:
    if key is not None and (rows is not None or sql is not None):
        raise typer.BadParameter("use --key, or --rows or --sql", context)
    if history and key is None:
        raise typer.BadParameter("--history needs a key: --key 42", context)
    if history and at is not None:
        raise typer.BadParameter("--history covers every checkpoint: omit --at", context)
    if uid is None and (key is not None or (rows is not None and sql is None)):
        raise typer.BadParameter(
            "name the operator: headgate state JOB lists the operators", context
        )


def _show(found: StateOverview | StateValue | StateHistory | StateRows) -> None:
    match found:
        case StateOverview():
            _show_overview(found)
        case StateValue():
            _show_value(found)
        case StateHistory():
            _show_history(found)
        case StateRows():
            _show_rows(found)


def _show_overview(found: StateOverview) -> None:
    if not found.operators:
        say(f"No operator of job '{found.job}' holds state")
        return
    print_table(
        ["operator", "kind", "state", "key", Right("rows"), Right("size")],
        [
            [
                each.uid,
                each.kind,
                ", ".join(each.variables),
                ", ".join(map(" ".join, zip(each.keys, each.key_types, strict=True))) or "-",
                format_count(each.rows),
                format_size(each.bytes),
            ]
            for each in found.operators
        ],
    )
    note(f"as of {_of(found.checkpoint, found.moment)}")


def _show_value(found: StateValue) -> None:
    if found.found:
        say(visible_json(found.value))
    elif found.deleted:
        say(f"key {visible(found.key)} was deleted")
    else:
        say(f"no value is stored under key {visible(found.key)}")
    note(f"as of {_of(found.checkpoint, found.moment)}")


def _show_history(found: StateHistory) -> None:
    if found.left_off:
        note(f"{format_count(found.left_off)} older checkpoints are not shown")
    for each in found.entries:
        style = {"deleted": "red", "changed": "yellow", "unreadable": "red"}.get(each.change, "")
        head = Text(f"{each.checkpoint:<12}{each.moment:%Y-%m-%d %H:%M:%S} UTC  ")
        say(head.append(each.change, style=style))
        for line in _lines(each):
            say(f"  {line}")


def _lines(entry: HistoryEntry) -> Iterable[str]:
    match entry.change:
        case "first" | "appeared":
            yield visible(json.dumps(entry.value, ensure_ascii=False))
        case "changed":
            for name, (old, new) in entry.differences.items():
                yield f"{visible(name)}: {_short(old)} -> {_short(new)}"
        case "unreadable":
            yield visible(entry.problem)


def _short(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))


def _show_rows(found: StateRows) -> None:
    print_table(
        [*map(visible, found.columns)],
        [[_cell(each) for each in row] for row in found.rows],
    )
    more = ", and more exist" if found.cut else ""
    note(f"{format_count(len(found.rows))} rows{more}, as of {_of(found.checkpoint, found.moment)}")


def _cell(value: Any) -> str:
    return visible(value) if isinstance(value, str) else _short(value)


def visible_json(value: Any) -> str:
    """Return a value as JSON on several lines, with control characters made visible."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    return "\n".join(map(visible, lines))


def _of(checkpoint: str, moment: datetime | None) -> str:
    return checkpoint if moment is None else f"{checkpoint}, {moment:%Y-%m-%d %H:%M:%S} UTC"
