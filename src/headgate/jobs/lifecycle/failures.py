"""Why an attempt ended: for the restart strategy, the status and the error that ends the job."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate._codec import Moment, RoundedSeconds, alias
from headgate.errors import Domain, HeadgateError

# The longest stack trace, in characters: its beginning and its end.
_TRACE_HEAD = 16 << 10
_TRACE_TAIL = 8 << 10
_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one attempt ended.

    Attributes:
        code: An error's code, or INTERNAL if it has none.
        root_cause: The innermost cause, with its type.
        where: The room it came from: flow, supervisor, driver, query.
        retryable: Whether a later attempt may succeed.
        attempt: The attempt that failed; the machine fills it in.
        healthy: How long the attempt had run; the machine fills it in.
        domain: Who can fix it, as errors name it.
    """

    at: Moment
    code: str
    message: str
    root_cause: str
    where: str
    retryable: bool
    attempt: int = 0
    healthy: RoundedSeconds = field(default=timedelta(0), metadata=alias("healthy_s"))
    hint: str = ""
    domain: str = ""

    def to_error(self) -> HeadgateError:
        """Return the error that ends the job if no attempt follows."""
        return HeadgateError(
            self.code,
            self.message,
            hint=self.hint,
            domain=Domain(self.domain),
            retryable=self.retryable,
            root_cause=self.root_cause,
        )


def to_failure(error: Exception, *, at: datetime, where: str) -> Failure:
    """Return the failure of an attempt that ended with an error."""
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    root_cause = f"{type(root).__name__}: {root}"
    if not isinstance(error, HeadgateError):
        error = HeadgateError(
            "INTERNAL",
            f"{type(error).__name__}: {error}",
            hint="report it with the job's logs",
            domain=Domain.INTERNAL,
            retryable=True,
        )
    return Failure(
        at=at,
        code=error.code,
        message=error.message,
        root_cause=error.root_cause or root_cause,
        where=where,
        retryable=error.retryable,
        hint=error.hint,
        domain=error.domain.value,
    )


def format_trace(error: BaseException, *, more: str = "") -> str:
    """Return the stack trace of an error with its causes, innermost first; a long one is cut.

    Args:
        more: The stack trace of another process, which comes first.
    """
    traces: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(traces) < _DEEPEST:
        traces.insert(0, "".join(traceback.format_exception(cause, chain=False)))
        cause = cause.__cause__ or cause.__context__
    text = "\n".join(part.strip("\n") + "\n" for part in (more, *traces) if part)
    left_out = len(text) - _TRACE_HEAD - _TRACE_TAIL
    if left_out <= 0:
        return text
    return f"{text[:_TRACE_HEAD]}\n... {left_out} characters ...\n{text[-_TRACE_TAIL:]}"
