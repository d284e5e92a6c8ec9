"""Options that several verbs share, with one wording each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

# Where the topics are, for a terminal's verbs that do not say.
ON_VARIABLE = "HEADGATE_ON"
# The server that a terminal's verbs ask, and the token that lets them in.
SERVER_VARIABLE = "HEADGATE_SERVER"
TOKEN_VARIABLE = "HEADGATE_TOKEN"

FlowFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="FLOW", help="A flow's file: flow.py, or flow.py:name.")
]
On: TypeAlias = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="LOG",
        envvar=ON_VARIABLE,
        help="Where the topics are: files:DIR, kafka://HOST:9092, pulsar://HOST:6650.",
    ),
]
Home: TypeAlias = Annotated[
    Path, typer.Option("--home", metavar="DIR", help="Where jobs live.", file_okay=False)
]
Server: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        envvar=SERVER_VARIABLE,
        help="Ask a server, as http://localhost:8270, in place of this machine.",
        show_default=False,
    ),
]
TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help=f"The server's token, if it is not in {TOKEN_VARIABLE}.",
        show_default=False,
        dir_okay=False,
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON, on one line; errors too.")
]
