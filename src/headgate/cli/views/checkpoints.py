"""The commands on checkpoints: list, show, pin, unpin and verify them, and take savepoints."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from rich.text import Text

from headgate._units import format_count, format_duration, format_size
from headgate.checkpoints.checkpoint import AnyCheckpoint, Checkpoint, UnreadableCheckpoint
from headgate.cli.parts.options import HomeFolder, Json
from headgate.cli.parts.output import (
    Right,
    format_time,
    note,
    or_dash,
    print_facts,
    print_section,
    print_table,
    say,
    show,
    visible,
)
from headgate.cli.parts.place import (
    DEFAULT_TIMEOUT,
    Job,
    Place,
    Timeout,
    complete_checkpoint,
    complete_job,
    patience,
)
from headgate.jobs.checkpoints.portable import PortableSavepoint
from headgate.jobs.control.verbs import Savepoint
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME

_CORRUPTED = 3

Columns = list[str | Right]
Rows = list[list[str | Text]]


class Action(enum.StrEnum):
    """The actions on one checkpoint."""

    SHOW = "show"
    PIN = "pin"
    UNPIN = "unpin"


def checkpoints(
    job: Job,
    action: Annotated[Action | None, typer.Argument(help="What to do with one.")] = None,
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="chk-17, LINEAGE/chk-17 of an earlier run, a savepoint's name, or latest.",
            autocompletion=complete_checkpoint,
        ),
    ] = None,
    *,
    every_run: Annotated[
        bool, typer.Option("--all", help="Include those of the job's earlier runs.")
    ] = False,
    place: Place,
) -> None:
    """List a job's checkpoints and savepoints, oldest first; show, pin or unpin one.

    A pinned checkpoint is kept, whatever --retain says.

    [bold]Examples[/bold]

      headgate checkpoints order-enrichment
      headgate checkpoints order-enrichment show chk-17
      headgate checkpoints order-enrichment pin chk-17
      headgate checkpoints order-enrichment unpin chk-17
    """
    if action is None:
        listed = place.home.checkpoints(job, every_run=every_run)
        place.show(listed, lambda _: _print_list(listed, job, every_run=every_run))
        return
    if checkpoint is None:
        raise typer.BadParameter(f"name the checkpoint to {action}, as in chk-17", place.context)
    if action is Action.SHOW:
        place.show(place.home.checkpoint(job, checkpoint), _print_one)
    else:
        pinned = place.home.pin(job, checkpoint, pinned=action is Action.PIN)
        words = "pinned" if pinned.pinned else "not pinned"
        place.show(pinned, lambda _: say(f"{pinned.id} is {words}"))


def _print_list(listed: Sequence[AnyCheckpoint], job: str, *, every_run: bool) -> None:
    if listed:
        print_table(*checkpoint_rows(listed, every_run=every_run))
    else:
        say(f"Job '{job}' has no checkpoints yet")


def checkpoint_rows(
    listed: Sequence[AnyCheckpoint], *, every_run: bool = False
) -> tuple[Columns, Rows]:
    """Return a table of checkpoints: its headings and its rows.

    Args:
        every_run: Name them with their runs. Batches are numbered in each run, so that an id alone
            means a checkpoint of the present one.
    """
    runs = {checkpoint.run for checkpoint in listed if checkpoint.run is not None}
    rows = [_row(one.source if every_run else one.id, one) for one in listed]
    columns: Columns = ["checkpoint", "completed (UTC)", Right("took"), Right("records")]
    columns += ["watermark (UTC)", Right("state rows"), Right("state"), Right("size")]
    columns += [Right("new"), "status", "kind", "pinned"]
    if len(runs) < 2:
        return columns, rows
    return [*columns, "run"], [
        [*row, one.run or "-"] for row, one in zip(rows, listed, strict=True)
    ]


def _row(name: str, checkpoint: AnyCheckpoint) -> list[str | Text]:
    status = Text(checkpoint.status, style="red" if checkpoint.problems else "green")
    end: list[str | Text] = [status, checkpoint.kind, "pinned" if checkpoint.pinned else "-"]
    if isinstance(checkpoint, UnreadableCheckpoint):
        return [name, *["-"] * 8, *end]
    state = checkpoint.state.values()
    return [
        name,
        format_time(checkpoint.completed_at),
        or_dash(checkpoint.took, format_duration),
        format_count(checkpoint.records),
        or_dash(checkpoint.watermark, format_time),
        format_count(sum(operator.rows for operator in state)) if state else "-",
        format_size(sum(operator.bytes for operator in state)) if state else "-",
        format_size(checkpoint.full_bytes),
        format_size(checkpoint.new_bytes),
        *end,
    ]


def _print_one(checkpoint: AnyCheckpoint) -> None:
    print_facts(_facts(checkpoint))
    if isinstance(checkpoint, Checkpoint):
        print_section(
            ["source", Right("records"), "position"],
            [
                [name, format_count(source.records), visible(or_dash(source.position, _compact))]
                for name, source in sorted(checkpoint.sources.items())
            ],
        )
        print_section(
            ["operator", Right("rows"), Right("size")],
            [
                [uid, format_count(operator.rows), format_size(operator.bytes)]
                for uid, operator in checkpoint.state.items()
            ],
        )
    _say_problems(checkpoint)


def _facts(checkpoint: AnyCheckpoint) -> Iterable[tuple[str, str]]:
    yield "checkpoint", checkpoint.id
    yield "kind", checkpoint.kind
    yield "status", checkpoint.status
    yield "pinned", "yes" if checkpoint.pinned else "no"
    if isinstance(checkpoint, Checkpoint):
        yield "completed", f"{format_time(checkpoint.completed_at)} UTC"
        yield "took", or_dash(checkpoint.took, format_duration)
        yield "batch took", format_duration(checkpoint.duration)
        if checkpoint.watermark is not None:
            yield "watermark", f"{format_time(checkpoint.watermark)} UTC"
        size, new = format_size(checkpoint.full_bytes), format_size(checkpoint.new_bytes)
        yield "size", f"{size}, {new} new"
        yield "files", format_count(checkpoint.files)
        yield "parallelism", format_count(checkpoint.parallelism)
    yield "run", checkpoint.run or "-"
    yield "folder", str(checkpoint.folder)


def _compact(position: str) -> str:
    try:
        return json.dumps(json.loads(position), separators=(",", ":"))
    except ValueError:
        return position


def verify(
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
    home: HomeFolder = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Check every file of a job's checkpoints and savepoints, or of one folder.

    It reads every file; the job may run meanwhile. Spark opens the state of the newest checkpoint
    without a problem and counts its rows. Exits with 3 if a file is missing or corrupted.

    [bold]Examples[/bold]

      headgate verify order-enrichment
      headgate verify /backup/orders-before-upgrade
      headgate verify s3a://shop/savepoints/before-upgrade
    """
    verified = FolderHome(home).verify(subject, open_newest=not files_only)
    show(verified, lambda _: _print_verified(verified, subject), as_json=as_json)
    if any(checkpoint.problems for checkpoint in verified):
        raise typer.Exit(_CORRUPTED)


def _print_verified(verified: Sequence[AnyCheckpoint], subject: str) -> None:
    if not verified:
        say(f"Job '{subject}' has no checkpoints yet")
    for checkpoint in verified:
        files = f", {checkpoint.files} files" if isinstance(checkpoint, Checkpoint) else ""
        counts = (checkpoint.rows or {}).items()
        rows = "".join(f", {uid} {format_count(count)} rows" for uid, count in counts)
        say(f"{checkpoint.id}: {_verdict(checkpoint)}{files}{rows}")
        _say_problems(checkpoint)
    bad = [checkpoint.id for checkpoint in verified if checkpoint.problems]
    if bad:
        note(f"corrupted: {', '.join(bad)}")


def _verdict(checkpoint: AnyCheckpoint) -> str:
    wrong = len(checkpoint.problems)
    if not wrong:
        return "all is well"
    return "1 file is wrong" if wrong == 1 else f"{format_count(wrong)} files are wrong"


def _say_problems(checkpoint: AnyCheckpoint) -> None:
    for problem in checkpoint.problems:
        say(Text(f"  {visible(str(problem))}", style="red"))


def savepoint(
    job: Job,
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="DIR|URL",
            help="Its folder, or s3a://BUCKET/FOLDER, which must not exist; by default in the "
            "job's folder.",
        ),
    ] = None,
    portable: Annotated[
        bool,
        typer.Option(
            "--portable", help="Write state as Parquet files that any tool can read and change."
        ),
    ] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    place: Place,
) -> None:
    """Take a savepoint of a job: a folder that can be moved and restored from anywhere.

    It holds the last committed batch. A running job continues; a stopped job stays stopped.
    Savepoints are never deleted automatically. A portable savepoint holds each operator's state as
    Parquet, by uid: rows can be changed, and the job can start from it with another parallelism.

    [bold]Examples[/bold]

      headgate savepoint order-enrichment
      headgate savepoint order-enrichment --to /backup/orders-before-upgrade
      headgate savepoint order-enrichment --to s3a://shop/savepoints/before-upgrade
      headgate savepoint order-enrichment --portable --to /tmp/orders-state
    """
    home, waits = place.home, patience(timeout, place)
    if portable:
        place.show(home.take_portable_savepoint(job, to=to, patience=waits), _say_portable)
    else:
        place.show(home.take_savepoint(job, to=to, patience=waits), say_savepoint)


def say_savepoint(savepoint: Savepoint) -> None:
    """Print the name, size and folder of a savepoint."""
    say(f"Savepoint '{savepoint.name}': {format_size(savepoint.bytes)} in {savepoint.folder}")


def _say_portable(savepoint: PortableSavepoint) -> None:
    rows = ", ".join(f"{uid} {format_count(n)} rows" for uid, n in savepoint.rows.items())
    say(f"Portable savepoint '{savepoint.name}': {rows} in {savepoint.folder}")
