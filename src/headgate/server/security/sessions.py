"""The sessions of browsers that signed in."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from headgate.server.security.tokens import Token

SESSION_COOKIE = "headgate_session"
SESSION_LASTS = timedelta(hours=12)
# With more browsers, the oldest one has to sign in again.
_MOST_SESSIONS = 1_000


class Sessions:
    """Sessions in memory; they end with the server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Token, float]] = {}

    def begin(self, token: Token) -> str:
        """Return the id of a new session, which the browser keeps in a cookie."""
        session = secrets.token_urlsafe(32)
        with self._lock:
            self._forget_old()
            while len(self._open) >= _MOST_SESSIONS:
                del self._open[next(iter(self._open))]
            self._open[session] = (token, self._clock() + SESSION_LASTS.total_seconds())
        return session

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
        for session in [name for name, (_, until) in self._open.items() if until <= now]:
            del self._open[session]
