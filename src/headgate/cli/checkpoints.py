"""The verbs on checkpoints: list, show, pin and unpin them, and verify their files."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.text import Text

from headgate._units import format_count, format_duration, format_size
from headgate.checkpoints.checkpoint import AnyCheckpoint, Checkpoint, UnreadableCheckpoint
from headgate.cli.job_options import Job, complete_checkpoint, complete_job
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import Right, note, print_json, print_table, say, visible
from headgate.cli.place import open_home
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME

_DAMAGED = 3

Columns = list[str | Right]
Rows = list[list[str | Text]]


class Action(enum.StrEnum):
    """What can be done with one checkpoint."""

    SHOW = "show"
    PIN = "pin"
    UNPIN = "unpin"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("checkpoints")(_checkpoints)
    app.command("verify")(_verify)


def _checkpoints(
    context: typer.Context,
    job: Job,
    action: Annotated[
        Action | None, typer.Argument(help="What to do with one.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="chk-17, a savepoint's name, or latest.",
            show_default=False,
            autocompletion=complete_checkpoint,
        ),
    ] = None,
    every_run: Annotated[
        bool, typer.Option("--all", help="Those of the job's earlier runs, too.")
    ] = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """List a job's checkpoints and savepoints, oldest first; show, pin or unpin one.

    A pinned checkpoint stays, whatever --retain says.

    [bold]Examples[/bold]

      headgate checkpoints order-enrichment
      headgate checkpoints order-enrichment show chk-17
      headgate checkpoints order-enrichment pin chk-17
      headgate checkpoints order-enrichment unpin chk-17
    """
    place = open_home(context, home, server, token_file)
    if action is None:
        _list(place.checkpoints(job, every_run=every_run), job, as_json=as_json)
        return
    if checkpoint is None:
        raise typer.BadParameter(f"name the checkpoint to {action}, as in chk-17", context)
    if action is Action.SHOW:
        found = place.checkpoint(job, checkpoint)
    else:
        found = place.pin(job, checkpoint, pinned=action is Action.PIN)
    if as_json:
        print_json(found)
    elif action is Action.SHOW:
        _show(found)
    else:
        say(f"{found.id} is {'pinned' if found.pinned else 'not pinned'}")


def _list(found: Sequence[AnyCheckpoint], job: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif found:
        print_table(*checkpoint_rows(found))
    else:
        say(f"Job '{job}' has no checkpoints yet")


def checkpoint_rows(found: Sequence[AnyCheckpoint]) -> tuple[Columns, Rows]:
    """Return a table of checkpoints: its headings and its rows."""
    runs = {each.run for each in found if each.run is not None}
    columns: Columns = ["checkpoint", "completed (UTC)", Right("took"), Right("records")]
    columns += ["watermark (UTC)", Right("state rows"), Right("state"), Right("size")]
    columns += [Right("new"), "status", "kind", "pinned"]
    columns += ["run"] if len(runs) > 1 else []
    return columns, [[*_row(each), *([each.run or "-"] if len(runs) > 1 else [])] for each in found]


def _row(checkpoint: AnyCheckpoint) -> list[str | Text]:
    status = Text(checkpoint.status, style="red" if checkpoint.problems else "green")
    end: list[str | Text] = [status, checkpoint.kind, "pinned" if checkpoint.pinned else "-"]
    if isinstance(checkpoint, UnreadableCheckpoint):
        return [checkpoint.id, *["-"] * 8, *end]
    state = checkpoint.state.values()
    return [
        checkpoint.id,
        f"{checkpoint.completed_at:%Y-%m-%d %H:%M:%S}",
        format_duration(checkpoint.duration),
        format_count(checkpoint.records),
        "-" if checkpoint.watermark is None else f"{checkpoint.watermark:%Y-%m-%d %H:%M:%S}",
        format_count(sum(each.rows for each in state)) if state else "-",
        format_size(sum(each.bytes for each in state)) if state else "-",
        format_size(checkpoint.full_bytes),
        format_size(checkpoint.new_bytes),
        *end,
    ]


def _show(checkpoint: AnyCheckpoint) -> None:
    for label, value in _facts(checkpoint):
        say(f"{label:<12}{value}")
    if isinstance(checkpoint, Checkpoint) and checkpoint.sources:
        say("")
        print_table(
            ["source", Right("records"), "position"],
            [
                [name, format_count(each.records), visible(_compact(each.position))]
                for name, each in sorted(checkpoint.sources.items())
            ],
        )
    if isinstance(checkpoint, Checkpoint) and checkpoint.state:
        say("")
        print_table(
            ["operator", Right("rows"), Right("size")],
            [
                [uid, format_count(each.rows), format_size(each.bytes)]
                for uid, each in checkpoint.state.items()
            ],
        )
    _say_problems(checkpoint)


def _facts(checkpoint: AnyCheckpoint) -> Iterable[tuple[str, str]]:
    yield "checkpoint", checkpoint.id
    yield "kind", checkpoint.kind
    yield "status", checkpoint.status
    yield "pinned", "yes" if checkpoint.pinned else "no"
    if isinstance(checkpoint, Checkpoint):
        yield "completed", f"{checkpoint.completed_at:%Y-%m-%d %H:%M:%S} UTC"
        yield "took", format_duration(checkpoint.duration)
        if checkpoint.watermark is not None:
            yield "watermark", f"{checkpoint.watermark:%Y-%m-%d %H:%M:%S} UTC"
        yield (
            "size",
            f"{format_size(checkpoint.full_bytes)}, {format_size(checkpoint.new_bytes)} new",
        )
        yield "files", format_count(checkpoint.files)
        yield "parallelism", format_count(checkpoint.parallelism)
    yield "run", checkpoint.run or "-"
    yield "folder", str(checkpoint.folder)


def _compact(position: str | None) -> str:
    try:
        return "-" if position is None else json.dumps(json.loads(position), separators=(",", ":"))
    except ValueError:
        return str(position)


def _verify(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="JOB|PATH",
            help="A job, or the folder of a checkpoint or a savepoint.",
            autocompletion=complete_job,
        ),
    ],
    files_only: Annotated[
        bool, typer.Option("--files-only", help="Do not have Spark open the state.")
    ] = False,
    home: Home = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Check every file of a job's checkpoints and savepoints, or of one folder.

    Reads them all, so that it takes as long as reading them does; the job may run meanwhile. Of
    the newest one that is whole Spark opens the state and counts its rows. It exits with 3 if
    anything is wrong.

    [bold]Examples[/bold]

      headgate verify order-enrichment
      headgate verify /backup/orders-before-upgrade
    """
    found = FolderHome(home).verify(subject, open_newest=not files_only)
    if as_json:
        print_json(found)
    elif not found:
        say(f"Job '{subject}' has no checkpoints yet")
    else:
        for each in found:
            files = f", {each.files} files" if isinstance(each, Checkpoint) else ""
            rows = "".join(
                f", {uid} {format_count(count)} rows" for uid, count in (each.rows or {}).items()
            )
            say(f"{each.id}: {_verdict(each)}{files}{rows}")
            _say_problems(each)
    bad = [each.id for each in found if each.problems]
    if bad:
        if not as_json:
            note(f"damaged: {', '.join(bad)}")
        raise typer.Exit(_DAMAGED)


def _verdict(checkpoint: AnyCheckpoint) -> str:
    wrong = len(checkpoint.problems)
    if not wrong:
        return "all is well"
    return "1 file is wrong" if wrong == 1 else f"{format_count(wrong)} files are wrong"


def _say_problems(checkpoint: AnyCheckpoint) -> None:
    for each in checkpoint.problems:
        say(Text(f"  {visible(str(each))}", style="red"))
