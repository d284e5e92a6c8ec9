"""One action of a client: whether it is allowed, how it is run, and its lines in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headgate.errors import HeadgateError
from headgate.server.context import ServerContext
from headgate.server.operations import Operation, Progress
from headgate.server.security import names
from headgate.server.security.access import Access, Role
from headgate.server.security.limits import RateLimitedError


class Action:
    """One action of a client: refused or started, and written to the audit log in either case."""

    def __init__(
        self,
        context: ServerContext,
        access: Access,
        verb: str,
        job: str | None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.context = context
        self.home = context.home
        self.access = access
        self.verb = verb
        self._job = job
        self._details = details or {}
        self._client = f"{access.who} {access.address}"

    def __enter__(self) -> Action:
        try:
            self._check()
        except HeadgateError as error:
            # A client that never stops asking would fill the log.
            if error.code != "RATE_LIMITED" or self.context.actions.is_news(self._client):
                self._write(error.code)
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object
    ) -> None:
        if error is not None:
            self._write(error.code if isinstance(error, HeadgateError) else "INTERNAL")

    def start(
        self,
        work: Callable[[Progress], Any],
        *,
        begun: Callable[[Operation], None] = lambda _: None,
        ended: Callable[[Operation], None] = lambda _: None,
    ) -> Operation:
        """Start the work on a thread of its own.

        Args:
            begun: Called with the operation before the work begins.
            ended: Called with the operation as it ended.
        """

        def log_end(operation: Operation) -> None:
            ended(operation)
            self._write(
                "DONE" if operation.error is None else operation.error.code,
                operation=operation.id,
                job=operation.job,
            )

        operation = self.context.operations.start(
            self.verb, self._job, self.access.who, work, begun=begun, ended=log_end
        )
        self._write("STARTED", operation=operation.id)
        return operation

    def repeat(self, operation: Operation) -> Operation:
        """Answer a repeated request with the operation of the first one, as it is now."""
        self._write("REPEATED", operation=operation.id, job=operation.job)
        return self.context.operations.find(operation.id) or operation

    def do(self, work: Callable[[], Any]) -> Operation:
        """Do the work before this returns."""
        operation = self.context.operations.do(self.verb, self._job, self.access.who, work)
        self._write("DONE", operation=operation.id)
        return operation

    def _check(self) -> None:
        # First, so that refused requests count as well.
        wait = self.context.actions.take(self._client)
        if wait:
            raise RateLimitedError(self.verb, wait)
        self.access.check(Role.OPERATE, to=self.verb)
        if self._job is not None:
            names.check_job(self._job)
            self.context.check_shown(self._job)

    def _write(self, outcome: str, *, operation: str | None = None, job: str | None = None) -> None:
        self.context.audit.add(
            self.access,
            self.verb,
            outcome=outcome,
            job=job or self._job,
            operation=operation,
            details=self._details,
        )
