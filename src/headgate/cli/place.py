"""Where a verb's jobs are: in a home on this machine, or on a server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from headgate.cli.options import TOKEN_VARIABLE
from headgate.cli.output import note, print_json_note
from headgate.client.home import Home
from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome

if TYPE_CHECKING:
    from headgate.client.server_home import ServerHome

_ROLES = ("view:", "operate:")


def open_home(
    context: typer.Context, home: Path, server: str | None, token_file: Path | None
) -> Home:
    """Return the home of the jobs that a verb is about."""
    return find_server(context, server, token_file) or FolderHome(home)


def find_server(
    context: typer.Context, server: str | None, token_file: Path | None, *, local: str = "home"
) -> ServerHome | None:
    """Return the server that a verb is about, or None where it is about this machine.

    What was typed wins over HEADGATE_SERVER; to type both is a contradiction.

    Args:
        local: The option that says where on this machine things are.
    """
    if not server:
        return None
    if was_typed(context, local):
        if was_typed(context, "server"):
            raise typer.BadParameter(f"--server and --{local} exclude each other", context)
        return None
    # An HTTP client is nothing that a verb on this machine should wait for.
    from headgate.client.connection import Connection
    from headgate.client.server_home import ServerHome

    connection = Connection(server, read_token(token_file))
    context.call_on_close(connection.close)
    if connection.exposes_token and not context.resilient_parsing:
        told = f"{connection.url} is plain HTTP: anyone on the network path can read the token"
        if context.params.get("as_json"):
            print_json_note({"warning": told})
        else:
            note(Text.assemble(("warning", "bold yellow"), f": {told}"))
    return ServerHome(connection)


def refuse_with_server(context: typer.Context, *names: str) -> None:
    """Refuse options that only this machine can follow."""
    typed = [name for name in names if was_typed(context, name)]
    if typed:
        do = "does" if len(typed) == 1 else "do"
        told = f"{list_options(context, typed)} {do} not go with --server"
        raise typer.BadParameter(told, context)


def list_options(context: typer.Context, names: Sequence[str]) -> str:
    """Return the options of some parameters, as they are typed."""
    options = {each.name: each.opts[0] for each in context.command.params}
    return " and ".join(options[name] for name in names)


def was_typed(context: typer.Context, name: str) -> bool:
    """Tell whether an option is on the command line, rather than left to its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def read_token(file: Path | None) -> str | None:
    """Return the token of a file, or else of HEADGATE_TOKEN; None where there is none.

    Both may have what a server takes: lines of `role:token`, of which the first counts.

    Raises:
        HeadgateError: TOKEN_NOT_READ.
    """
    if file is None:
        text = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise _not_read(file, why) from error
    lines = [line.strip() for line in text.splitlines()]
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        if file is None:
            return None
        raise _not_read(file, "it contains none")
    token = tokens[0]
    for role in _ROLES:
        token = token.removeprefix(role).strip()
    if not (token.isascii() and token.isprintable()):
        raise _not_read(file, "it has characters that a token cannot have")
    return token


def _not_read(file: Path | None, why: str) -> HeadgateError:
    place = TOKEN_VARIABLE if file is None else str(file)
    return HeadgateError(
        "TOKEN_NOT_READ",
        f"cannot read a token from {place}: {why}",
        hint=f"export {place}=TOKEN" if file is None else f"ls -l {file}",
    )
