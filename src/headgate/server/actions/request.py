"""One action that somebody asks for: may they, may they now, and what is written down of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headgate.errors import HeadgateError
from headgate.server.context import ServerContext
from headgate.server.operations import Operation, Progress
from headgate.server.security import names
from headgate.server.security.access import Access, Role


class Asked:
    """One action that somebody asks for: refused, or begun; written down in either case."""

    def __init__(
        self,
        context: ServerContext,
        access: Access,
        what: str,
        job: str | None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self._context = context
        self._access = access
        self._what = what
        self._job = job
        self._details = details or {}
        self._asker = f"{access.who} {access.address}"
        self.home = context.home

    def __enter__(self) -> Asked:
        try:
            self._check()
        except HeadgateError as error:
            # Whoever asks without end would fill the log.
            if error.code != "RATE_LIMITED" or self._context.actions.is_news(self._asker):
                self._write(error.code)
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        if error is not None:
            self._write(error.code if isinstance(error, HeadgateError) else "INTERNAL")

    def start(self, work: Callable[[Progress], Any]) -> Operation:
        """Begin the operation."""

        def ended(operation: Operation) -> None:
            self._write(
                "DONE" if operation.error is None else operation.error.code,
                operation=operation.id,
                job=operation.job,
            )

        begun = self._context.operations.start(
            self._what, self._job, self._access.who, work, ended=ended
        )
        self._write("STARTED", operation=begun.id)
        return begun

    def do(self, work: Callable[[], Any]) -> Operation:
        """Do the operation here and now."""
        done = self._context.operations.do(self._what, self._job, self._access.who, work)
        self._write("DONE", operation=done.id)
        return done

    def _check(self) -> None:
        # First: what is refused is counted, too.
        wait = self._context.actions.take(self._asker)
        if wait:
            raise rate_limited(self._what, wait)
        self._access.check(Role.OPERATE, to=self._what)
        if self._job is not None:
            names.check_job(self._job)
            self._context.check_shown(self._job)

    def _write(self, outcome: str, *, operation: str | None = None, job: str | None = None) -> None:
        self._context.audit.add(
            self._access,
            self._what,
            outcome=outcome,
            job=job or self._job,
            operation=operation,
            details=self._details,
        )


def rate_limited(what: str, wait: int) -> HeadgateError:
    """Return the refusal of a client that asks too often."""
    return HeadgateError(
        "RATE_LIMITED",
        f"cannot {what} now: this client sent too many requests",
        hint=f"try again in {wait} seconds",
        retryable=True,
    )
