"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

# The default log of a terminal's commands.
ON_VARIABLE = "HEADGATE_ON"
# The server of a terminal's commands, and its token.
SERVER_VARIABLE = "HEADGATE_SERVER"
TOKEN_VARIABLE = "HEADGATE_TOKEN"

FlowFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="FLOW", help="The flow's file: flow.py, or flow.py:name.")
]
On: TypeAlias = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="LOG",
        envvar=ON_VARIABLE,
        help="The log of the topics: files:DIR, kafka://HOST:9092, pulsar://HOST:6650.",
    ),
]
Home: TypeAlias = Annotated[
    Path, typer.Option("--home", metavar="DIR", help="Folder of the jobs.", file_okay=False)
]
Server: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar=SERVER_VARIABLE,
        help="Use a server, such as http://localhost:8270, instead of this machine.",
        show_default=False,
    ),
]
TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help=f"File with the server's token; by default {TOKEN_VARIABLE}.",
        show_default=False,
        dir_okay=False,
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON on one line, including errors.")
]
