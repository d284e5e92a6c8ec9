"""The command that serves jobs over HTTP."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from headgate.cli.parts.options import HomeFolder, Json, On
from headgate.cli.parts.output import note, plural, say, show
from headgate.connectors.logs import DEFAULT_LOG
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.values import DEFAULT_HOME

if TYPE_CHECKING:
    from headgate.server.settings import ServerSettings

_PORT = 8270

_Port: TypeAlias = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 for any free one.")
]
_Host: TypeAlias = Annotated[
    str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
]
_Flows: TypeAlias = Annotated[
    Path | None,
    typer.Option("--flows", metavar="DIR", help="Folder of the flows that can be submitted."),
]
_TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="File with lines of role:token; mode 600."),
]
_AllowHost: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="A host name under which browsers reach the server; may be repeated.",
    ),
]


def serve(
    port: _Port = _PORT,
    host: _Host = "127.0.0.1",
    flows: _Flows = None,
    on: On = DEFAULT_LOG,
    token_file: _TokenFile = None,
    allow_host: _AllowHost = None,
    home: HomeFolder = DEFAULT_HOME,
    as_json: Json = False,
) -> None:
    """Serve the jobs of a home: a console for people, REST under /v1 for programs.

    Flows in --flows can be submitted; each becomes a job with its own process, which outlives the
    server. A server restarts jobs that were submitted or started through it and died, when it
    starts and while it runs. Jobs of 'headgate run' on the same home are shown, too.

    By default it listens on this machine only. Any other --host needs a token: in HEADGATE_TOKEN,
    or in a file with a line 'view:TOKEN' or 'operate:TOKEN' for each. Ctrl-C ends the server; jobs
    continue.

    [bold]Examples[/bold]

      headgate serve --flows examples
      headgate serve --host 0.0.0.0 --token-file tokens --allow-host jobs.example.org
      headgate serve --port 8271 --home /srv/headgate --on kafka://localhost:9092
    """
    # Only this command needs the web libraries.
    from headgate.server import serving
    from headgate.server.security.tokens import TOKEN_VARIABLE, read_tokens
    from headgate.server.settings import ServerSettings

    tokens = read_tokens(token_file)
    # Jobs inherit the environment, and flows must not read the token.
    os.environ.pop(TOKEN_VARIABLE, None)

    def tell(chosen: ServerSettings) -> None:
        where = {"address": chosen.address, "home": str(chosen.home), "pid": os.getpid()}
        show({**where, "token": bool(tokens)}, lambda _: _say_started(chosen), as_json=as_json)
        sys.stdout.flush()

    serving.serve(
        ServerSettings(
            home=home,
            flows=flows,
            on=on,
            host=host,
            port=port,
            tokens=tokens,
            hosts=tuple(allow_host or ()),
        ),
        on_listening=tell,
    )
    if not as_json:
        _say_ended([view.name for view in FolderHome(home).jobs() if view.is_alive])


def _say_started(settings: ServerSettings) -> None:
    say(settings.address)
    operate = (
        "sign in with a token" if settings.tokens else "every user of this machine may operate"
    )
    note(f"Serving the jobs of {settings.home}; {operate}. Ctrl-C ends the server, jobs continue")


def _say_ended(running: Sequence[str]) -> None:
    left = f": {', '.join(running)}" if running else ""
    verb = "continues" if len(running) == 1 else "continue"
    note(f"The server has ended; {plural(len(running), 'job')} {verb}{left}")
