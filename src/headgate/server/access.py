"""Who may come in, and what for: tokens, roles, and the sessions of browsers."""

from __future__ import annotations

import contextvars
import enum
import hashlib
import hmac
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate.errors import Domain, HeadgateError

TOKEN_VARIABLE = "HEADGATE_TOKEN"
SHORTEST_TOKEN = 16
SESSION_COOKIE = "headgate_session"
SESSION_LASTS = timedelta(hours=12)
# More browsers than these are not remembered at once; the oldest has to sign in again.
_MOST_SESSIONS = 1_000
_SCOPE = "headgate.access"


class Role(enum.StrEnum):
    """What somebody may do."""

    VIEW = "view"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class Access:
    """Somebody who was let in.

    Attributes:
        who: A name for the audit log; no secret.
        address: Where they come from.
        session: The browser's session; None for a token, and where none is needed.
    """

    who: str
    role: Role
    address: str = ""
    session: str | None = field(default=None, repr=False)

    @property
    def may_operate(self) -> bool:
        """Whether they may change anything."""
        return self.role is Role.OPERATE

    def check(self, role: Role, *, to: str) -> None:
        """Refuse what the role does not allow.

        Args:
            to: What they want to do.

        Raises:
            HeadgateError: NOT_ALLOWED.
        """
        if role is Role.OPERATE and not self.may_operate:
            raise HeadgateError(
                "NOT_ALLOWED",
                f"cannot {to}: the role of this token is {self.role}, and it needs {role}",
                hint="use a token with the role operate",
            )


# Without a token everybody on this machine may do everything.
LOCAL = Access("local", Role.OPERATE)


@dataclass(frozen=True, slots=True)
class Token:
    """A secret that lets its bearer in."""

    secret: str = field(repr=False)
    role: Role = Role.OPERATE

    @property
    def who(self) -> str:
        """A name for it that can be shown and written down."""
        return f"{self.role}-{hashlib.sha256(self.secret.encode()).hexdigest()[:8]}"


def read_tokens(
    file: Path | None, environment: Mapping[str, str] | None = None
) -> tuple[Token, ...]:
    """Return the tokens of a file, or of HEADGATE_TOKEN where there is none.

    Args:
        file: Lines of `role:token`, or of a token alone, whose role is operate.
        environment: This process's, if left out.

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
            f"cannot use {file} as tokens: there is none in it",
            hint=f"python -c 'import secrets; print(secrets.token_urlsafe(32))' > {file}",
        )
    return tokens


def find_token(tokens: Sequence[Token], secret: str) -> Token | None:
    """Return the token that somebody has; how long it takes does not tell how much is right."""
    given = hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
    found = None
    for each in tokens:
        # All are compared, whichever was found.
        if hmac.compare_digest(given, hashlib.sha256(each.secret.encode()).digest()):
            found = each
    return found


class Sessions:
    """Browsers that signed in; they live in memory and end with the server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Token, float]] = {}

    def begin(self, token: Token) -> str:
        """Return the id of a new session, which the browser keeps in a cookie."""
        made = secrets.token_urlsafe(32)
        with self._lock:
            self._forget_old()
            while len(self._open) >= _MOST_SESSIONS:
                del self._open[next(iter(self._open))]
            self._open[made] = (token, self._clock() + SESSION_LASTS.total_seconds())
        return made

    def find(self, session: str | None) -> Token | None:
        """Return the token that a session was begun with; None once it has ended."""
        if session is None:
            return None
        with self._lock:
            token, until = self._open.get(session, (None, 0.0))
            return token if until > self._clock() else None

    def end(self, session: str | None) -> None:
        """End a session; one that is over already stays so."""
        with self._lock:
            self._open.pop(session or "", None)

    def _forget_old(self) -> None:
        now = self._clock()
        for each in [name for name, (_, until) in self._open.items() if until <= now]:
            del self._open[each]


_current: contextvars.ContextVar[Access | None] = contextvars.ContextVar(
    "headgate_access", default=None
)


def let_in(scope: dict[str, Any], access: Access) -> None:
    """Remember who makes a request, for all that is done for it."""
    scope[_SCOPE] = access
    _current.set(access)


def access_of(scope: Mapping[str, Any]) -> Access:
    """Return who makes a request.

    Raises:
        HeadgateError: NOT_SIGNED_IN if nobody was let in.
    """
    access = scope.get(_SCOPE)
    if isinstance(access, Access):
        return access
    raise not_signed_in()


def current_access() -> Access:
    """Return who is being served, inside a route or a page of the console.

    Inside a page this is whoever opened it, as long as their session lasts.

    Raises:
        HeadgateError: NOT_SIGNED_IN if nobody was let in, or their session has ended.
    """
    from headgate.server.context import get_context

    access = _find_page_access() or _current.get()
    if access is None:
        raise not_signed_in()
    if access.session is not None and get_context().sessions.find(access.session) is None:
        raise not_signed_in()
    return access


def not_signed_in() -> HeadgateError:
    """Return the refusal of somebody who has not said who they are."""
    return HeadgateError(
        "NOT_SIGNED_IN",
        "cannot let you in: this server needs a token",
        hint="send the header 'Authorization: Bearer TOKEN', or sign in at /login",
    )


def _find_page_access() -> Access | None:
    # Asked only where the console is loaded: REST alone does without NiceGUI.
    if "nicegui" not in sys.modules:
        return None
    from nicegui import context

    try:
        request = context.client.request
    except RuntimeError:
        # Outside of a page.
        return None
    access = None if request is None else request.scope.get(_SCOPE)
    return access if isinstance(access, Access) else None


def _read_private(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise HeadgateError(
            "TOKEN_NOT_FOUND", f"cannot read tokens from {file}: {why}", hint=f"ls -l {file}"
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HeadgateError(
            "TOKEN_FILE_UNSAFE",
            f"cannot use the tokens of {file}: others on this machine may read or write it",
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
