"""Options that several verbs share, with one wording each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

# Where the topics are, for a terminal's verbs that do not say.
ON_VARIABLE = "HEADGATE_ON"

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
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON, on one line; errors too.")
]
