"""The commands that control a job: start, stop, cancel, restart, pause, resume."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headgate._units import format_size
from headgate.cli.following import show_started
from headgate.cli.job_options import (
    DEFAULT_TIMEOUT,
    AllowRepeats,
    Job,
    OpenBatchChoice,
    Timeout,
    patience,
)
from headgate.cli.options import Home, Json, Server, TokenFile
from headgate.cli.output import print_json, say
from headgate.cli.place import find_server, open_home
from headgate.cli.running import show_run, tell_detached
from headgate.jobs.control.verbs import Loss
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME, Consent
from headgate.jobs.views.job import JobView

_SAVEPOINT = "--savepoint"
# The options of `stop` with a value; any other word without a dash is the job.
_WITH_VALUE = ("--timeout", "--home", "--server", "--token-file")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("start")(_start)
    app.command("stop", cls=_StopCommand)(_stop)
    app.command("cancel")(_cancel)
    app.command("restart")(_restart)
    app.command("pause")(_pause)
    app.command("resume")(_resume)


class _StopCommand(TyperCommand):
    """Allows `--savepoint` without a folder, which typer does not support."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return list(super().parse_args(ctx, fill_savepoint(args)))


def fill_savepoint(args: list[str]) -> list[str]:
    """Return the words after `stop`, with an empty folder if `--savepoint` has none."""
    if _SAVEPOINT not in args:
        return args
    place = args.index(_SAVEPOINT) + 1
    following = args[place] if place < len(args) else "-"
    names = [
        word
        for before, word in zip(["", *args], args, strict=False)
        if not word.startswith("-") and before not in _WITH_VALUE
    ]
    # A single word is the job, not a folder.
    if following.startswith("-") or names == [following]:
        return [*args[:place], "", *args[place:]]
    return args


def _start(
    context: typer.Context,
    job: Job,
    attach: Annotated[
        bool, typer.Option("--attach", help="Stay attached and show the job, like 'headgate run'.")
    ] = False,
    open_batch: OpenBatchChoice = None,
    allow_repeats: AllowRepeats = False,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Start a job with its last settings: from its newest checkpoint, in the background.

    The flow's file is read again; the options are those of the last 'headgate run'.

    [bold]Examples[/bold]

      headgate start order-enrichment
      headgate start order-enrichment --attach
    """
    consent = Consent(open_batch=open_batch, allow_repeats=allow_repeats)
    remote = find_server(context, server, token_file)
    if remote is not None:
        started = remote.start(job, consent=consent)
        show_started(remote, started, detach=not attach, as_json=as_json)
    elif attach:
        flow, options = FolderHome(home).last_start(job, consent=consent)
        show_run(flow, options, as_json=as_json)
    else:
        tell_detached(FolderHome(home).start(job, consent=consent), as_json=as_json)


def _stop(
    context: typer.Context,
    job: Job,
    savepoint: Annotated[
        str | None,
        typer.Option(
            _SAVEPOINT,
            metavar="[DIR]",
            help="Take a savepoint at the end: in DIR, or in the job's folder.",
        ),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Read all existing records and close all windows before stopping."
        ),
    ] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Stop a job between two batches, and wait until it has stopped.

    The current batch is finished first. A savepoint taken by the stop includes everything that was
    written.

    [bold]Examples[/bold]

      headgate stop order-enrichment
      headgate stop order-enrichment --savepoint
      headgate stop order-enrichment --savepoint /backup/orders --drain
    """
    place = open_home(context, home, server, token_file)
    stopped = place.stop(
        job, savepoint=savepoint, drain=drain, patience=patience(timeout, as_json=as_json)
    )
    if as_json:
        print_json(stopped)
        return
    _tell(stopped.view)
    taken = stopped.savepoint
    if taken is not None:
        say(f"Savepoint '{taken.name}': {format_size(taken.bytes)} in {taken.folder}")


def _cancel(
    context: typer.Context,
    job: Job,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be lost, and do nothing.")
    ] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """End a job at once, even in the middle of a batch.

    No record is lost: the next start repeats the batch. With --on-cancel delete the job's
    checkpoints are deleted; savepoints stay. --dry-run lists them.

    [bold]Examples[/bold]

      headgate cancel order-enrichment --dry-run
      headgate cancel order-enrichment
    """
    place = open_home(context, home, server, token_file)
    loss = place.preview_cancel(job)
    if dry_run:
        _tell_loss(loss, as_json=as_json)
        return
    view = place.cancel(job, patience=patience(timeout, as_json=as_json))
    _tell(view, as_json=as_json)
    if not as_json and loss.deletes_state:
        say("Its checkpoints were deleted (--on-cancel delete)")


def _restart(
    context: typer.Context,
    job: Job,
    open_batch: OpenBatchChoice = None,
    allow_repeats: AllowRepeats = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Stop a job between two batches and start it again, in the background.

    The flow's file is read again, and state is kept. A stopped job is started.

    [bold]Examples[/bold]

      headgate restart order-enrichment
    """
    place = open_home(context, home, server, token_file)
    started = place.restart(
        job,
        patience=patience(timeout, as_json=as_json),
        consent=Consent(open_batch=open_batch, allow_repeats=allow_repeats),
    )
    tell_detached(started, as_json=as_json)


def _pause(
    context: typer.Context,
    job: Job,
    timeout: Timeout = DEFAULT_TIMEOUT,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Pause a job: it reads nothing until it is resumed, and keeps its driver and its state.

    The current batch is finished. A job that restarts meanwhile stays paused.

    [bold]Examples[/bold]

      headgate pause order-enrichment
    """
    place = open_home(context, home, server, token_file)
    view = place.pause(job, patience=patience(timeout, as_json=as_json))
    _tell(view, as_json=as_json, more="; it will be paused when it runs again")


def _resume(
    context: typer.Context,
    job: Job,
    timeout: Timeout = DEFAULT_TIMEOUT,
    home: Home = DEFAULT_HOME,
    server: Server = None,
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Resume a paused job.

    [bold]Examples[/bold]

      headgate resume order-enrichment
    """
    place = open_home(context, home, server, token_file)
    view = place.resume(job, patience=patience(timeout, as_json=as_json))
    _tell(view, as_json=as_json, more="; it will resume when it runs again")


def _tell(view: JobView, *, as_json: bool = False, more: str = "") -> None:
    if as_json:
        print_json(view)
    else:
        say(f"Job '{view.name}' is {view.state}{more if view.state == 'RESTARTING' else ''}")


def _tell_loss(loss: Loss, *, as_json: bool) -> None:
    if as_json:
        print_json(loss)
        return
    say(f"Job '{loss.view.name}' is {loss.view.state} and would end at once")
    if not loss.deletes_state:
        say("Its checkpoints would stay (--on-cancel retain); nothing would be lost")
        return
    ids = ", ".join(loss.checkpoints) or "none yet"
    say(f"Its state would be deleted (--on-cancel delete), with its checkpoints: {ids}")
    say(f"That is {format_size(loss.bytes)} of checkpoints; savepoints would stay")
