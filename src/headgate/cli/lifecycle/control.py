"""The commands that control a job: start, stop, cancel, restart, pause, resume."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from headgate._units import format_size
from headgate.cli.parts.output import say
from headgate.cli.parts.place import DEFAULT_TIMEOUT, Job, Place, Timeout, patience
from headgate.cli.parts.running import show_run, show_started, tell_detached
from headgate.cli.views.checkpoints import say_savepoint
from headgate.jobs.control.verbs import Loss, Stopped
from headgate.jobs.values import Consent
from headgate.jobs.views.job import JobView

_SAVEPOINT = "--savepoint"
# The options of `stop` with a value; any other word without a dash is the job.
_WITH_VALUE = ("--timeout", "--home", "--server", "--token-file")


class StopCommand(TyperCommand):
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


def start(
    job: Job,
    *,
    attach: Annotated[
        bool, typer.Option("--attach", help="Stay attached and show the job, like 'headgate run'.")
    ] = False,
    consent: Consent,
    place: Place,
) -> None:
    """Start a job with its last settings: from its newest checkpoint, in the background.

    The flow's file is read again; the options are those of the last 'headgate run', without
    --until-caught-up and --drain.

    [bold]Examples[/bold]

      headgate start order-enrichment
      headgate start order-enrichment --attach
    """
    as_json = place.as_json
    if place.server is not None:
        started = place.server.start(job, consent=consent)
        show_started(place.server, started, detach=not attach, as_json=as_json)
    elif attach:
        flow, options = place.local.last_start(job, consent=consent)
        show_run(flow, options, as_json=as_json)
    else:
        tell_detached(place.local.start(job, consent=consent), as_json=as_json)


def stop(
    job: Job,
    *,
    savepoint: Annotated[
        str | None,
        typer.Option(
            _SAVEPOINT,
            metavar="[DIR]",
            help="Take a savepoint at the end: in DIR, which may be s3a://BUCKET/FOLDER, or in "
            "the job's folder.",
        ),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Read all existing records and close all windows before stopping."
        ),
    ] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    place: Place,
) -> None:
    """Stop a job between two batches, and wait until it has stopped.

    The current batch is finished first. A savepoint taken by the stop includes everything that was
    written.

    [bold]Examples[/bold]

      headgate stop order-enrichment
      headgate stop order-enrichment --savepoint
      headgate stop order-enrichment --savepoint /backup/orders --drain
    """
    stopped = place.home.stop(
        job, savepoint=savepoint, drain=drain, patience=patience(timeout, place)
    )
    place.show(stopped, _say_stopped)


def _say_stopped(stopped: Stopped) -> None:
    _say_state(stopped.view)
    if stopped.savepoint is not None:
        say_savepoint(stopped.savepoint)


def cancel(
    job: Job,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be lost, and do nothing.")
    ] = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
    place: Place,
) -> None:
    """End a job at once, even in the middle of a batch.

    No record is lost: the next start repeats the batch. With --on-cancel delete the job's
    checkpoints are deleted; savepoints stay. --dry-run lists them.

    [bold]Examples[/bold]

      headgate cancel order-enrichment --dry-run
      headgate cancel order-enrichment
    """
    loss = place.home.preview_cancel(job)
    if dry_run:
        place.show(loss, _say_loss)
        return
    place.show(place.home.cancel(job, patience=patience(timeout, place)), _say_state)
    if not place.as_json and loss.deletes_state:
        say("Its checkpoints were deleted (--on-cancel delete)")


def restart(
    job: Job, *, consent: Consent, timeout: Timeout = DEFAULT_TIMEOUT, place: Place
) -> None:
    """Stop a job between two batches and start it again, in the background.

    The flow's file is read again, and state is kept. A stopped job is started.

    [bold]Examples[/bold]

      headgate restart order-enrichment
    """
    started = place.home.restart(job, patience=patience(timeout, place), consent=consent)
    tell_detached(started, as_json=place.as_json)


def pause(job: Job, *, timeout: Timeout = DEFAULT_TIMEOUT, place: Place) -> None:
    """Pause a job: it reads nothing until it is resumed, and keeps its driver and its state.

    The current batch is finished. A job that restarts meanwhile stays paused.

    [bold]Examples[/bold]

      headgate pause order-enrichment
    """
    view = place.home.pause(job, patience=patience(timeout, place))
    place.show(view, lambda _: _say_state(view, "; it will be paused when it runs again"))


def resume(job: Job, *, timeout: Timeout = DEFAULT_TIMEOUT, place: Place) -> None:
    """Resume a paused job.

    [bold]Examples[/bold]

      headgate resume order-enrichment
    """
    view = place.home.resume(job, patience=patience(timeout, place))
    place.show(view, lambda _: _say_state(view, "; it will resume when it runs again"))


def _say_state(view: JobView, while_restarting: str = "") -> None:
    more = while_restarting if view.state == "RESTARTING" else ""
    say(f"Job '{view.name}' is {view.state}{more}")


def _say_loss(loss: Loss) -> None:
    say(f"Job '{loss.view.name}' is {loss.view.state} and would end at once")
    if not loss.deletes_state:
        say("Its checkpoints would stay (--on-cancel retain); nothing would be lost")
        return
    ids = ", ".join(loss.checkpoints) or "none yet"
    say(f"Its state would be deleted (--on-cancel delete), with its checkpoints: {ids}")
    say(f"That is {format_size(loss.bytes)} of checkpoints; savepoints would stay")
