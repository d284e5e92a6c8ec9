"""Options that several verbs share, with one wording each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

On: TypeAlias = Annotated[
    str,
    typer.Option("--on", metavar="LOG", help="Where the topics are: files:DIR, kafka://HOST:9092."),
]
Home: TypeAlias = Annotated[
    Path, typer.Option("--home", metavar="DIR", help="Where jobs live.", file_okay=False)
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print JSON, on one line; errors too.")
]
