"""Options of commands on jobs: the job's name with completion, and the timeout."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from headgate._units import format_duration, parse_duration
from headgate.cli.output import note
from headgate.cli.place import open_home
from headgate.client.home import Home
from headgate.errors import HeadgateError
from headgate.jobs.control.requests import Patience
from headgate.jobs.values import DEFAULT_HOME, OpenBatch
from headgate.jobs.views.job import JobView

_TOLD_EVERY = timedelta(seconds=5)


def complete_job(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of jobs with this beginning."""
    with contextlib.suppress(HeadgateError):
        return [name for name in _home(context).names() if name.startswith(incomplete)]
    return []


def complete_checkpoint(context: typer.Context, incomplete: str) -> list[str]:
    """Return the checkpoints of the job on the command line with this beginning, newest first."""
    job = context.params.get("job")
    with contextlib.suppress(HeadgateError):
        found = _home(context).checkpoints(str(job)) if job else []
        return [each.id for each in reversed(found) if each.id.startswith(incomplete)]
    return []


def _home(context: typer.Context) -> Home:
    given = context.params
    home = Path(given.get("home") or DEFAULT_HOME)
    return open_home(context, home, given.get("server"), given.get("token_file"))


Job: TypeAlias = Annotated[
    str, typer.Argument(metavar="JOB", help="The job's name.", autocompletion=complete_job)
]
Timeout: TypeAlias = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="How long to wait; the request stays valid afterwards.",
    ),
]
DEFAULT_TIMEOUT = "10m"
OpenBatchChoice: TypeAlias = Annotated[
    OpenBatch | None,
    typer.Option(
        "--open-batch",
        metavar="repeat|skip",
        help="A begun batch that has written rows: repeat it with the changed flow, or skip it.",
        rich_help_panel="How it starts and ends",
        show_default=False,
    ),
]
AllowRepeats: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-repeats",
        help="If the newest checkpoint is corrupted, fall back to an older one even if rows are "
        "duplicated.",
        rich_help_panel="How it starts and ends",
    ),
]


def patience(timeout: str, *, as_json: bool) -> Patience:
    """Return how a command waits: with a line on standard error every few seconds."""
    told = _TOLD_EVERY

    def tell(view: JobView, waited: timedelta) -> None:
        nonlocal told
        if waited >= told and not as_json:
            told += _TOLD_EVERY
            note(f"job '{view.name}' is {view.state} after {whole(waited)}{_left(view)}")

    return Patience(parse_duration(timeout), tell)


def whole(duration: timedelta) -> str:
    """Return a duration in whole seconds."""
    return format_duration(timedelta(seconds=round(duration.total_seconds())))


def _left(view: JobView) -> str:
    batch = view.status.get("batch")
    return "" if batch is None else f", batch {batch}"
