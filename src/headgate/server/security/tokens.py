"""Tokens: the secrets of clients, each with a role."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate.errors import Domain, HeadgateError
from headgate.server.security.access import Role

TOKEN_VARIABLE = "HEADGATE_TOKEN"
SHORTEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Token:
    """The secret of a client, and its role."""

    secret: str = field(repr=False)
    role: Role = Role.OPERATE

    @property
    def who(self) -> str:
        """A name for the client that does not reveal the secret."""
        return f"{self.role}-{hashlib.sha256(self.secret.encode()).hexdigest()[:8]}"


def read_tokens(
    file: Path | None, environment: Mapping[str, str] | None = None
) -> tuple[Token, ...]:
    """Return the tokens of a file, or of HEADGATE_TOKEN where there is none.

    Args:
        file: Lines of `role:token`, or of a token alone, whose role is operate.
        environment: The environment of this process, if left out.

    Raises:
        HeadgateError: TOKEN_FILE_UNSAFE, TOKEN_NOT_FOUND or TOKEN_TOO_SHORT.
    """
    if file is None:
        known = os.environ if environment is None else environment
        text, place = known.get(TOKEN_VARIABLE, ""), f"the variable {TOKEN_VARIABLE}"
    else:
        text, place = _read_private(file), str(file)
    lines = [line.strip() for line in text.splitlines()]
    tokens = tuple(_parse_token(line, place) for line in lines if line and not line.startswith("#"))
    if file is not None and not tokens:
        raise HeadgateError(
            "TOKEN_NOT_FOUND",
            f"cannot use {file} as tokens: it contains none",
            hint=f"python -c 'import secrets; print(secrets.token_urlsafe(32))' > {file}",
        )
    return tokens


def find_token(tokens: Sequence[Token], secret: str) -> Token | None:
    """Return the token with a secret; the time it takes does not depend on the secret."""
    given = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
    # All are compared, also after a match.
    matches = [
        token
        for token in tokens
        if hmac.compare_digest(given, hashlib.sha256(token.secret.encode()).digest())
    ]
    return matches[-1] if matches else None


def _read_private(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise HeadgateError(
            "TOKEN_NOT_FOUND", f"cannot read tokens from {file}: {why}", hint=f"ls -l {file}"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HeadgateError(
            "TOKEN_FILE_UNSAFE",
            f"cannot use the tokens of {file}: other users can read or write it",
            hint=f"chmod 600 {file}",
            domain=Domain.USER,
        )
    return text


def _parse_token(line: str, place: str) -> Token:
    head, colon, rest = line.partition(":")
    named = colon and head in tuple(Role)
    secret = rest.strip() if named else line
    if len(secret) < SHORTEST_TOKEN:
        raise HeadgateError(
            "TOKEN_TOO_SHORT",
            f"cannot use a token of {place}: it has {len(secret)} characters, and at least "
            f"{SHORTEST_TOKEN} are needed",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return Token(secret, Role(head) if named else Role.OPERATE)
