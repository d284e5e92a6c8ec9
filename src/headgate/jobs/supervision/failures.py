"""How an attempt's failure is told: as an error to raise, as an event, to the restart strategy."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headgate.errors import Domain, HeadgateError
from headgate.jobs.attempts.wire import Failed
from headgate.jobs.lifecycle.restart import Failure


def died(job: str, exit_: str) -> Failed:
    """Return the failure of an attempt whose process ended without a word."""
    return Failed(
        code="DRIVER_DIED",
        message=f"job {job!r}: the process that holds Spark's driver is gone: {exit_}",
        hint=f"headgate logs {job}",
        domain=Domain.EXTERNAL.value,
        retryable=True,
        root_cause=exit_,
        where="driver",
    )


def refused(error: HeadgateError) -> Failed:
    """Return the failure of an attempt that was not launched."""
    return Failed(
        code=error.code,
        message=error.message,
        hint=error.hint,
        domain=error.domain.value,
        retryable=error.retryable,
        root_cause=error.root_cause or f"{error.code}: {error.message}",
        where="supervisor",
    )


def to_error(failed: Failed) -> HeadgateError:
    """Return a failure as the error that ends the job if nothing follows it."""
    return HeadgateError(
        failed.code,
        failed.message,
        hint=failed.hint,
        domain=Domain(failed.domain),
        retryable=failed.retryable,
        root_cause=failed.root_cause,
    )


def to_failure(failed: Failed, *, at: datetime) -> Failure:
    """Return a failure as the restart strategy weighs it."""
    return Failure(
        at=at,
        code=failed.code,
        message=failed.message,
        root_cause=failed.root_cause,
        where=failed.where,
        retryable=failed.retryable,
        hint=failed.hint,
        domain=failed.domain,
    )


def to_event(failed: Failed) -> dict[str, Any]:
    """Return what the event of a failure tells."""
    return {
        "code": failed.code,
        "message": failed.message,
        "root_cause": failed.root_cause,
        "where": failed.where,
        "retryable": failed.retryable,
        "hint": failed.hint,
    }


def not_taken(error: Exception, *, job: str) -> HeadgateError:
    """Return the error of a checkpoint or savepoint that was not taken; the job goes on."""
    if isinstance(error, HeadgateError):
        return error
    if isinstance(error, OSError):
        return HeadgateError(
            "CHECKPOINT_NOT_WRITTEN", f"cannot take a savepoint: {error}", domain=Domain.EXTERNAL
        )
    return HeadgateError(
        "INTERNAL",
        f"cannot take a savepoint of job {job!r}: {type(error).__name__}: {error}",
        hint="report it with the job's logs",
        domain=Domain.INTERNAL,
    )
