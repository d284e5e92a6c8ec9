"""The commands that remove jobs and old runs: delete, prune."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headgate._units import format_size
from headgate.cli.parts.output import note, say, visible
from headgate.cli.parts.place import Job, Place
from headgate.errors import HeadgateError
from headgate.jobs.removal.deletion import Deletion
from headgate.jobs.removal.pruning import Pruning

_DECLINED = 1


def delete(
    job: Job,
    *,
    keep_savepoints: Annotated[
        bool,
        typer.Option(
            "--keep-savepoints",
            help="Leave its savepoints in place; a new job of that name finds them.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, and do nothing.")
    ] = False,
    place: Place,
) -> None:
    """Delete a job that is not running: its runs, checkpoints, savepoints, logs and settings.

    Topics, consumer groups and savepoints in other folders stay; the command lists them. It asks
    for confirmation first; without a terminal it needs --yes.

    [bold]Examples[/bold]

      headgate delete order-enrichment --dry-run
      headgate delete order-enrichment
      headgate delete order-enrichment --keep-savepoints --yes
    """
    if dry_run or not yes:
        planned = place.home.preview_delete(job, keep_savepoints=keep_savepoints)
        if dry_run:
            place.show(planned, lambda _: _say_removal(planned, f"Job '{job}' would be deleted"))
            return
        if not _agrees(planned):
            note("Nothing was deleted")
            raise typer.Exit(_DECLINED)
    deleted = place.home.delete(job, keep_savepoints=keep_savepoints)
    # The question has listed it already.
    brief = f"Job '{job}' was deleted; {format_size(deleted.bytes)} were freed"
    place.show(deleted, lambda _: _say_removal(deleted, brief) if yes else say(brief))


def prune(
    job: Job,
    *,
    drop_checkpoints: Annotated[
        bool,
        typer.Option(
            "--drop-checkpoints",
            help="Also remove unpinned checkpoints of runs that the present run does not descend "
            "from.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, and do nothing.")
    ] = False,
    place: Place,
) -> None:
    """Remove the files of a job's old runs that nothing needs; the job may be running.

    The present run, savepoints, pinned checkpoints, and the checkpoints of all runs that the
    present run descends from stay.

    [bold]Examples[/bold]

      headgate prune order-enrichment --dry-run
      headgate prune order-enrichment --drop-checkpoints
    """
    pruned = place.home.prune(job, drop_checkpoints=drop_checkpoints, dry_run=dry_run)
    verb = "would be freed" if dry_run else "were freed"
    title = f"{format_size(pruned.bytes)} of old runs of job '{job}' {verb}"
    if not pruned.removes:
        title = f"Job '{job}' has no files of old runs to remove"
    place.show(pruned, lambda _: _say_removal(pruned, title))


def _agrees(planned: Deletion) -> bool:
    """Return whether the user agrees; a question needs a terminal."""
    if not has_terminal():
        raise HeadgateError(
            "NOT_CONFIRMED",
            f"cannot delete job {planned.job!r} without confirmation: there is no terminal to ask "
            "for it",
            hint=f"headgate delete {planned.job} --yes",
        )
    for line in _lines(planned):
        note(line)
    question = f"Delete job '{planned.job}' and {format_size(planned.bytes)} of files?"
    return typer.confirm(question, default=False, err=True)


def has_terminal() -> bool:
    """Return True if a question can be asked and answered."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _say_removal(removal: Deletion | Pruning, title: str) -> None:
    say(title)
    for line in _lines(removal):
        say(line)


def _lines(removal: Deletion | Pruning) -> list[str]:
    lines = []
    if removal.removes:
        lines += ["removes:" if removal.dry_run else "removed:"]
        lines += [f"  {visible(part.what)}: {format_size(part.bytes)}" for part in removal.removes]
    if removal.stays:
        lines += ["stays:", *(f"  {visible(what)}" for what in removal.stays)]
    return lines
