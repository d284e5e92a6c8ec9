"""The token that a client sends to a server."""

from __future__ import annotations

import os
from pathlib import Path

from headgate.errors import HeadgateError

TOKEN_VARIABLE = "HEADGATE_TOKEN"
_ROLES = ("view:", "operate:")


def read_token(file: Path | None) -> str | None:
    """Return the token in a file, or else in HEADGATE_TOKEN; None if there is none.

    Both may have the lines `role:token` of a server's file; the first line counts.

    Raises:
        HeadgateError: TOKEN_NOT_READ.
    """
    if file is None:
        text = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or "it is not text"
            raise _not_read(file, problem) from error
    lines = [line.strip() for line in text.splitlines()]
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        if file is None:
            return None
        raise _not_read(file, "it has no token")
    token = tokens[0]
    for role in _ROLES:
        token = token.removeprefix(role).strip()
    if not (token.isascii() and token.isprintable()):
        raise _not_read(file, "it has characters that a token cannot have")
    return token


def _not_read(file: Path | None, problem: str) -> HeadgateError:
    source = TOKEN_VARIABLE if file is None else str(file)
    return HeadgateError(
        "TOKEN_NOT_READ",
        f"cannot read a token from {source}: {problem}",
        hint=f"export {source}=TOKEN" if file is None else f"ls -l {file}",
    )
