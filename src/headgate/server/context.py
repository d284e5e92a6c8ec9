"""What a server consists of, for its routes, its actions and its pages."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from headgate.errors import Domain, HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.secrets import hide_secrets
from headgate.jobs.upkeep.watch import SessionWatch
from headgate.jobs.views.job import JobView
from headgate.server.operations import Operations
from headgate.server.security.access import Access, Role
from headgate.server.security.audit_log import AuditLog
from headgate.server.security.limits import Buckets
from headgate.server.security.sessions import Sessions
from headgate.server.settings import ServerSettings
from headgate.server.submissions import Submissions

# Slow reads, such as of state or of a broker; the others must not wait for them.
_SLOW_AT_ONCE = 8
_SLOW_WAIT_S = 20.0
# A waiting read holds a thread that the others need as well.
_SLOW_WAITERS = 8
# Secrets change rarely, and every text that is shown is searched for them.
_SECRETS_LAST_S = 10.0

P = ParamSpec("P")
T = TypeVar("T")

# The server itself, in the audit log.
SERVER = Access("server", Role.OPERATE)


class ServerContext:
    """What a server consists of.

    Attributes:
        home: The jobs that it serves.
        operations: Long work that is running, or ended lately.
        submissions: The submits that came with an idempotency key.
        audit: The audit log.
        sessions: Browsers that signed in.
        actions: The rate limit of changes, for each client.
        failures: The rate limit of wrong tokens, for each client.
        watch: Starts jobs again that died; None if the server does not.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.home = FolderHome(settings.home)
        self.operations = Operations(hide=self.hide_error)
        self.submissions = Submissions(settings.folder / "submissions.json")
        for operation in self.submissions.operations():
            self.operations.recall(operation)
        self.audit = AuditLog(settings.folder / "audit.jsonl", hide=self.hide)
        self.sessions = Sessions()
        self.actions = Buckets(settings.limits.actions)
        self.failures = Buckets(settings.limits.failures)
        self.watch = (
            SessionWatch(settings.home, on_taken_up=self._log_take_up)
            if settings.keeps_up
            else None
        )
        self._slow = threading.BoundedSemaphore(_SLOW_AT_ONCE)
        self._slow_lock = threading.Lock()
        self._slow_waiters = 0
        self._secrets: tuple[float, frozenset[str]] = (float("-inf"), frozenset())

    @property
    def keeps_up(self) -> bool:
        """Whether the server starts jobs again that died."""
        return self.settings.keeps_up

    def shown_jobs(self) -> list[JobView]:
        """Return the jobs that this server shows, in short."""
        only = self.settings.only
        return [job for job in self.home.jobs() if only in (None, job.name)]

    def shown_job(self, job: str) -> JobView:
        """Return a job that this server shows, in short.

        Raises:
            HeadgateError: JOB_NOT_FOUND.
        """
        self.check_shown(job)
        return self.home.job(job)

    def read_user_data(
        self,
        read: Callable[Concatenate[str, P], T],
        job: str,
        /,
        *args: P.args,
        **options: P.kwargs,
    ) -> T:
        """Read a user's own data of a job for a page: one slow read, without known secrets."""
        self.check_shown(job)
        with self.slow_read():
            value = read(job, *args, **options)
        return self.hide_in(value, guess=False)

    @contextmanager
    def slow_read(self) -> Iterator[None]:
        """Hold one of the few places for slow reads.

        Raises:
            HeadgateError: SERVER_BUSY if none becomes free, or too many wait already.
        """
        if not self._slow.acquire(blocking=False) and not self._wait_for_place():
            raise HeadgateError(
                "SERVER_BUSY",
                "cannot answer now: too many long reads are running",
                hint="try again in a moment",
                domain=Domain.EXTERNAL,
                retryable=True,
            )
        try:
            yield
        finally:
            self._slow.release()

    def check_shown(self, job: str) -> None:
        """Refuse a job that this server does not show.

        Raises:
            HeadgateError: JOB_NOT_FOUND.
        """
        only = self.settings.only
        if only is not None and job != only:
            raise HeadgateError(
                "JOB_NOT_FOUND",
                f"cannot show job {job!r}: this server serves only job {only!r}",
                hint="headgate serve",
            )

    def hide(self, text: str) -> str:
        """Return a text without the secrets that the server's jobs use, and its own tokens."""
        return hide_secrets(text, self._known_secrets())

    def hide_in(self, value: T, *, guess: bool = True) -> T:
        """Return a value without secrets in its texts: JSON values, dataclasses, or both.

        Args:
            guess: Also hide texts that look like secrets; not for a user's own data.
        """
        known = self._known_secrets()
        if not known and not guess:
            return value
        hidden: T = _map_texts(value, lambda text: hide_secrets(text, known, guess=guess))
        return hidden

    def hide_error(self, error: HeadgateError) -> HeadgateError:
        """Return an error without secrets in its texts."""
        return HeadgateError(
            error.code,
            self.hide(error.message),
            hint=self.hide(error.hint),
            domain=error.domain,
            retryable=error.retryable,
        )

    def close(self) -> None:
        """Stop watching jobs; they run on."""
        if self.watch is not None:
            self.watch.stop()

    def _wait_for_place(self) -> bool:
        """Wait for a slow read to end, and return whether this one got its place."""
        with self._slow_lock:
            if self._slow_waiters >= _SLOW_WAITERS:
                return False
            self._slow_waiters += 1
        try:
            return self._slow.acquire(timeout=_SLOW_WAIT_S)
        finally:
            with self._slow_lock:
                self._slow_waiters -= 1

    def _known_secrets(self) -> frozenset[str]:
        at, known = self._secrets
        if time.monotonic() - at < _SECRETS_LAST_S:
            return known
        settings = self.settings
        known = self.home.secrets(settings.on) | {token.secret for token in settings.tokens}
        self._secrets = (time.monotonic(), known)
        return known

    def _log_take_up(self, job: str, error: HeadgateError | None) -> None:
        outcome = "DONE" if error is None else error.code
        details = {} if error is None else {"error": error.message}
        self.audit.add(SERVER, "take-up", job=job, outcome=outcome, details=details)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value in which every text is changed; keys of mappings stay as they are."""
    if isinstance(value, str):
        changed = change(value)
        # An enum's member stays a member.
        return value if changed == value else changed
    if isinstance(value, Mapping):
        return {key: _map_texts(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_map_texts(inner, change) for inner in value]
    if isinstance(value, tuple):
        items = [_map_texts(inner, change) for inner in value]
        # A named tuple stays one.
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        texts = {
            field.name: _map_texts(getattr(value, field.name), change)
            for field in fields(value)
            if field.init
        }
        return replace(value, **texts)
    return value


_current: contextvars.ContextVar[ServerContext | None] = contextvars.ContextVar(
    "headgate_context", default=None
)
_last: list[ServerContext] = []


def use_context(context: ServerContext) -> None:
    """Make a context the one of this request, and of threads without a request."""
    _current.set(context)
    _last[:] = [context]


def get_context() -> ServerContext:
    """Return the context of the server that this is called in.

    Raises:
        RuntimeError: If there is no server.
    """
    context = _current.get() or (_last[0] if _last else None)
    if context is None:
        raise RuntimeError("there is no server in this process")
    return context
