"""Operations: long work that a client starts and then polls."""

from __future__ import annotations

import enum
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from headgate._codec import Form, JsonValue, Moment, encode
from headgate.errors import Domain, HeadgateError, find_refusal
from headgate.server.hints import describe_error

# How many run at once, how many may wait, and how many that ended are kept.
_AT_ONCE = 16
_WAITING = 64
_REMEMBERED = 1_000

_log = logging.getLogger(__name__)

Progress = Callable[[str], None]
Work = Callable[[Progress], Any]

_Error = Annotated[
    HeadgateError,
    Form(
        describe_error,
        lambda content: HeadgateError(
            content["code"],
            content["message"],
            hint=content.get("command") or content["hint"],
            domain=Domain(content["domain"]),
        ),
        {
            "type": "object",
            "properties": {
                **{name: {"type": "string"} for name in ("code", "message", "hint", "command")},
                "domain": {"type": "string", "enum": [domain.value for domain in Domain]},
            },
            "required": ["code", "message", "hint", "domain"],
        },
    ),
]


class OperationState(enum.StrEnum):
    """The state of an operation."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One piece of work, as it is at one moment.

    Attributes:
        kind: The action: `stop`, `savepoint`, `restore` and the like.
        job: The job; None before its name is known.
        by: The client that asked.
        progress: How far it is, in words.
        result: What the command prints with `--json`, once it is DONE.
        error: Why it FAILED.
    """

    id: str
    kind: str
    job: str | None
    by: str
    state: OperationState = OperationState.RUNNING
    started_at: Moment
    ended_at: Moment | None = None
    progress: str = ""
    result: Mapping[str, JsonValue] | None = None
    error: _Error | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.state is not OperationState.RUNNING


class Operations:
    """The operations of a server: those that are running, and the last ones that ended."""

    def __init__(
        self, *, hide: Callable[[HeadgateError], HeadgateError] = lambda error: error
    ) -> None:
        """Create an empty list of operations.

        Args:
            hide: Takes secrets out of an error.
        """
        self._hide = hide
        self._lock = threading.Lock()
        self._known: dict[str, Operation] = {}
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._ended = threading.Condition(self._lock)

    def start(
        self,
        kind: str,
        job: str | None,
        by: str,
        work: Work,
        *,
        begun: Callable[[Operation], None] = lambda _: None,
        ended: Callable[[Operation], None] = lambda _: None,
    ) -> Operation:
        """Begin an operation and return at once.

        Args:
            work: Called on a thread of its own with a function that takes its progress; what it
                returns, as JSON values, is the result.
            begun: Called with the operation before the work begins; if it raises, nothing is done.
            ended: Called with the operation as it ended, on that thread.

        Raises:
            HeadgateError: SERVER_BUSY if too many are running.
        """
        operation = self._add(kind, job, by)
        try:
            begun(operation)
        except BaseException as error:
            self._end(operation, error=self._explain(error, kind))
            raise
        threading.Thread(
            target=self._run,
            args=(operation, work, ended),
            name=f"operation-{operation.id}",
            # The server may end first: a request to a job stays valid, and jobs are processes
            # of their own.
            daemon=True,
        ).start()
        return operation

    def do(self, kind: str, job: str | None, by: str, work: Callable[[], Any]) -> Operation:
        """Do a short piece of work, and return the operation as it ended.

        Raises:
            HeadgateError: What the work raised.
        """
        operation = self._add(kind, job, by)
        try:
            result = encode(work())
        except BaseException as error:
            self._end(operation, error=self._explain(error, kind))
            raise
        return self._end(operation, result=result)

    def get(self, operation: str) -> Operation:
        """Return an operation as it is now.

        Raises:
            HeadgateError: OPERATION_NOT_FOUND.
        """
        known = self.find(operation)
        if known is None:
            raise HeadgateError(
                "OPERATION_NOT_FOUND",
                f"cannot show operation {operation!r}: this server has no such operation; it "
                f"keeps the last {_REMEMBERED} since its start",
                hint="GET /v1/operations",
            )
        return known

    def find(self, operation: str) -> Operation | None:
        """Return an operation as it is now, or None if it is not remembered."""
        with self._lock:
            return self._known.get(operation)

    def recall(self, operation: Operation) -> None:
        """Add an operation that ended before this server was started."""
        with self._lock:
            self._known[operation.id] = operation
            self._forget()

    def list(self, job: str | None = None) -> list[Operation]:
        """Return the operations of a job, or all, newest first."""
        with self._lock:
            known = [*self._known.values()]
        return [operation for operation in reversed(known) if job in (None, operation.job)]

    def settle(self, longest: timedelta) -> int:
        """Wait for running operations to end; return how many still run."""
        deadline = time.monotonic() + longest.total_seconds()
        with self._ended:
            while self._count() and (left := deadline - time.monotonic()) > 0:
                self._ended.wait(left)
            return self._count()

    def _add(self, kind: str, job: str | None, by: str) -> Operation:
        operation = Operation(
            id=f"op-{secrets.token_hex(8)}",
            kind=kind,
            job=job,
            by=by,
            started_at=datetime.now(UTC),
        )
        with self._lock:
            if self._count() >= _AT_ONCE + _WAITING:
                raise HeadgateError(
                    "SERVER_BUSY",
                    f"cannot {kind}: {self._count()} operations are already running",
                    hint="GET /v1/operations",
                    domain=Domain.EXTERNAL,
                    retryable=True,
                )
            self._known[operation.id] = operation
            self._forget()
        return operation

    def _run(self, operation: Operation, work: Work, ended: Callable[[Operation], None]) -> None:
        def report(progress: str) -> None:
            self._change(operation.id, {"progress": progress})

        with self._free:
            try:
                over = self._end(operation, result=encode(work(report)))
            except BaseException as error:  # noqa: BLE001 - the operation reports it
                over = self._end(operation, error=self._explain(error, operation.kind))
            ended(over)

    def _end(
        self, operation: Operation, *, result: Any = None, error: HeadgateError | None = None
    ) -> Operation:
        state = OperationState.DONE if error is None else OperationState.FAILED
        changes = {"state": state, "result": result, "error": error, "ended_at": datetime.now(UTC)}
        if state is OperationState.DONE and isinstance(result, Mapping) and operation.job is None:
            changes["job"] = result.get("job")
        over = self._change(operation.id, changes)
        with self._ended:
            self._ended.notify_all()
        return over

    def _change(self, operation: str, changes: Mapping[str, Any]) -> Operation:
        with self._lock:
            changed = replace(self._known[operation], **changes)
            self._known[operation] = changed
        return changed

    def _count(self) -> int:
        return sum(not operation.is_over for operation in self._known.values())

    def _forget(self) -> None:
        over = [operation.id for operation in self._known.values() if operation.is_over]
        for oldest in over[: max(0, len(over) - _REMEMBERED)]:
            del self._known[oldest]

    def _explain(self, error: BaseException, kind: str) -> HeadgateError:
        if isinstance(error, HeadgateError):
            return self._hide(error)
        refusal = find_refusal(error, f"cannot {kind}") if isinstance(error, OSError) else None
        if refusal is not None:
            return self._hide(refusal)
        _log.error("operation %s failed", kind, exc_info=error)
        unexpected = HeadgateError(
            "INTERNAL",
            f"cannot {kind}: {type(error).__name__}: {error}",
            hint="see the server's standard error",
            domain=Domain.INTERNAL,
        )
        return self._hide(unexpected)
