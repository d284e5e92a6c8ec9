"""What the JVM throws, in the terms of the house."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import Domain, HeadgateError

_PLAN = "io.headgate.kernel.plan.PlanException: "
_STOP = "io.headgate.kernel.gate.StopAtBoundary"
_DEEPEST = 20
_HINTS = {
    "BAD_EXPRESSION": "mend the SQL text in the flow",
    "UNKNOWN_COLUMN": "name a column that is there",
    "KEY_MISMATCH": "cast the column first: .with_columns(id='CAST(id AS BIGINT)')",
}


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the kernel says of a flow as a HeadgateError."""
    try:
        yield
    except Py4JJavaError as error:
        known = _of_plan(error)
        if known is None:
            raise
        raise known from None


def _of_plan(error: Py4JJavaError) -> HeadgateError | None:
    thrown = error.java_exception
    if not str(thrown.toString()).startswith(_PLAN):
        return None
    code = str(thrown.code())
    return HeadgateError(code, str(thrown.getMessage()), hint=_HINTS.get(code, ""))


def query_causes(query: StreamingQuery) -> list[str]:
    """Return what ended a query, outermost first: class and message of each; empty if nothing did.

    Asks the JVM rather than `query.exception()`, which keeps only the first two causes.
    """
    found: list[str] = []
    ended = query._jsq.exception()
    thrown = ended.get() if ended.isDefined() else None
    while thrown is not None and len(found) < _DEEPEST:
        found.append(str(thrown.toString()))
        thrown = thrown.getCause()
    return found


def is_clean_stop(causes: Sequence[str]) -> bool:
    """Tell whether a query ended because its gate was told to end it."""
    return any(cause.startswith(_STOP) for cause in causes)


def query_failure(job: str, causes: Sequence[str]) -> HeadgateError:
    """Return the failure of a query, named by its root cause."""
    lost = next((cause for cause in causes if "DATA_LOST: " in cause), None)
    if lost is not None:
        return HeadgateError(
            "DATA_LOST",
            f"cannot go on with job {job!r}: {_first_line(lost.split('DATA_LOST: ')[1])}",
            hint="put the file back, or remove the topic's folder to begin it anew",
            domain=Domain.EXTERNAL,
        )
    return HeadgateError(
        "QUERY_FAILED",
        f"job {job!r} ended: {_first_line(causes[-1])}",
        hint="the job's log holds the whole story; --verbose shows it",
        domain=Domain.INTERNAL,
        retryable=True,
        root_cause=causes[-1],
    )


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else text
