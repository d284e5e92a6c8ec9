"""What a command on jobs is given: where the jobs are, how to print, and how long to wait."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from headgate._units import format_duration, parse_duration
from headgate.cli.parts.options import Command, HomeFolder, Json, keyword, replace_parameter
from headgate.cli.parts.output import Shown, note, print_json_note, show, warn
from headgate.client.home import Home
from headgate.client.tokens import TOKEN_VARIABLE, read_token
from headgate.errors import HeadgateError
from headgate.jobs.control.requests import Patience
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME, Consent, OpenBatch
from headgate.jobs.views.job import JobView

if TYPE_CHECKING:
    from headgate.client.server_home import ServerHome

_NOTE_EVERY = timedelta(seconds=5)

_Server: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar="HEADGATE_SERVER",
        help="Use a server, such as http://localhost:8270, instead of this machine.",
    ),
]
_TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help=f"File with the server's token; by default {TOKEN_VARIABLE}.",
        dir_okay=False,
    ),
]


@dataclass(frozen=True)
class Place:
    """The jobs that a command is about, and how it prints: `--home`, `--server` and `--json`."""

    context: typer.Context
    local: FolderHome
    as_json: bool

    @cached_property
    def server(self) -> ServerHome | None:
        """The server, or None if the jobs are on this machine."""
        return find_server(self.context)

    @property
    def home(self) -> Home:
        """The home of the jobs: the server, or else the folder."""
        return self.server or self.local

    def show(self, value: Shown, print_: Callable[[Shown], object]) -> None:
        """Print a result: as JSON with `--json`, otherwise by a function."""
        show(value, print_, as_json=self.as_json)

    def refuse(self, problems: Mapping[str, bool]) -> None:
        """Refuse the command line if one of these problems is true of it."""
        for problem, is_true in problems.items():
            if is_true:
                raise typer.BadParameter(problem, self.context)


@dataclass(frozen=True)
class Remote:
    """The server of a command on topics: `--server`, or none if `--on` names a log."""

    context: typer.Context

    def find_server(self, *, not_with: str) -> ServerHome | None:
        """Return the server, or None; an option that it does not support is refused."""
        server = find_server(self.context, local_option="on")
        if server is not None:
            refuse_with_server(self.context, not_with)
        return server


def find_server(context: typer.Context, *, local_option: str = "home") -> ServerHome | None:
    """Return the server of a command, or None if it is about this machine.

    An option on the command line takes precedence over HEADGATE_SERVER.

    Args:
        local_option: The option that names a place on this machine.
    """
    url, token_file = context.params.get("server"), context.params.get("token_file")
    if not url:
        return None
    if was_typed(context, local_option):
        if was_typed(context, "server"):
            raise typer.BadParameter(f"--server and --{local_option} exclude each other", context)
        return None
    # A command on this machine must not wait for the import of an HTTP client.
    from headgate.client.connection import Connection
    from headgate.client.server_home import ServerHome

    connection = Connection(url, read_token(token_file and Path(token_file)))
    context.call_on_close(connection.close)
    if connection.exposes_token and not context.resilient_parsing:
        warning = f"{connection.url} is plain HTTP: anyone on the network path can read the token"
        if context.params.get("as_json"):
            print_json_note({"warning": warning})
        else:
            warn(warning)
    return ServerHome(connection)


def refuse_with_server(context: typer.Context, *names: str) -> None:
    """Refuse options that work only on this machine."""
    typed = [name for name in names if was_typed(context, name)]
    if typed:
        do = "does" if len(typed) == 1 else "do"
        raise typer.BadParameter(
            f"{list_options(context, typed)} {do} not go with --server", context
        )


def list_options(context: typer.Context, names: Sequence[str]) -> str:
    """Return the options of parameters, as they are typed."""
    options = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    return " and ".join(options[name] for name in names)


def was_typed(context: typer.Context, name: str) -> bool:
    """Return True if an option is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def complete_job(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names of jobs with this beginning."""
    with contextlib.suppress(HeadgateError):
        return [name for name in _home(context).names() if name.startswith(incomplete)]
    return []


def complete_checkpoint(context: typer.Context, incomplete: str) -> list[str]:
    """Return the checkpoints of the job on the command line with this beginning, newest first."""
    job = context.params.get("job")
    with contextlib.suppress(HeadgateError):
        checkpoints = _home(context).checkpoints(str(job)) if job else []
        ids = [checkpoint.id for checkpoint in reversed(checkpoints)]
        return [name for name in ids if name.startswith(incomplete)]
    return []


def _home(context: typer.Context) -> Home:
    folder = Path(context.params.get("home") or DEFAULT_HOME)
    return find_server(context) or FolderHome(folder)


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


def patience(timeout: str, place: Place) -> Patience:
    """Return how a command waits: with a line on standard error every few seconds."""
    next_note = _NOTE_EVERY

    def tell(view: JobView, waited: timedelta) -> None:
        nonlocal next_note
        if waited >= next_note and not place.as_json:
            next_note += _NOTE_EVERY
            batch = view.status.get("batch")
            at = "" if batch is None else f", batch {batch}"
            note(f"job '{view.name}' is {view.state} after {whole(waited)}{at}")

    return Patience(parse_duration(timeout), tell)


def whole(duration: timedelta) -> str:
    """Return a duration in whole seconds."""
    return format_duration(timedelta(seconds=round(duration.total_seconds())))


_OpenBatch: TypeAlias = Annotated[
    OpenBatch | None,
    typer.Option(
        "--open-batch",
        metavar="repeat|skip",
        help="A begun batch that has written rows: repeat it with the changed flow, or skip it.",
        rich_help_panel="How it starts and ends",
    ),
]
_AllowRepeats: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-repeats",
        help="If the newest checkpoint is corrupted, fall back to an older one even if rows are "
        "duplicated.",
        rich_help_panel="How it starts and ends",
    ),
]

_CONTEXT = keyword("context", typer.Context)
_SERVER = (keyword("server", _Server, None), keyword("token_file", _TokenFile, None))
_HOME = keyword("home", HomeFolder, DEFAULT_HOME)
_JSON = keyword("as_json", Json, default=False)
_CONSENT = (
    keyword("open_batch", _OpenBatch, None),
    keyword("allow_repeats", _AllowRepeats, default=False),
)
# Parameters of commands that are built from several options: the options, and the value.
_BUILT: dict[str, tuple[Sequence[inspect.Parameter], Callable[[Any], Any]]] = {
    "consent": (_CONSENT, lambda given: Consent(**given)),
    "place": (
        (_CONTEXT, _HOME, *_SERVER, _JSON),
        lambda given: Place(given["context"], FolderHome(given["home"]), given["as_json"]),
    ),
    "remote": ((_CONTEXT, *_SERVER), lambda given: Remote(given["context"])),
}


def expand_options(function: Command) -> Command:
    """Return a command with the options of its parameters `place`, `remote` and `consent`."""
    for name, (parameters, build) in _BUILT.items():
        if name in inspect.signature(function).parameters:
            function = replace_parameter(function, name, parameters, build)
    return function
