"""Errors as answers: the code and the message that the CLI prints, and a hint."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.responses import JSONResponse, Response

from headgate.errors import Domain, HeadgateError, find_refusal
from headgate.server.hints import describe_error

_log = logging.getLogger(__name__)

# Statuses that the code of an error decides; its domain decides the others.
_STATUS: Mapping[str, int] = {
    "NOT_SIGNED_IN": 401,
    "NOT_ALLOWED": 403,
    "CROSS_SITE": 403,
    "JOB_RUNNING": 409,
    "JOB_BUSY": 409,
    "JOB_IN_USE": 409,
    "JOB_NOT_RUNNING": 409,
    "JOB_ENDED": 409,
    "JOB_NEVER_RAN": 409,
    "ILLEGAL_TRANSITION": 409,
    "NOTHING_COMMITTED": 409,
    "IDEMPOTENCY_KEY_REUSED": 409,
    "TOO_LARGE": 413,
    "WRONG_HOST": 421,
    "RATE_LIMITED": 429,
    "SERVER_BUSY": 503,
}
_DOMAIN_STATUS = {Domain.USER: 400, Domain.EXTERNAL: 503, Domain.INTERNAL: 500}
# The seconds after which to try again, where waiting helps.
_PAUSE = "5"


def status_of(error: HeadgateError) -> int:
    """Return the HTTP status of an error."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    return 404 if error.code.endswith("_NOT_FOUND") else _DOMAIN_STATUS[error.domain]


def to_reply(error: HeadgateError, *, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as an answer."""
    status = status_of(error)
    more = dict(headers or {})
    if status == 401:
        more["WWW-Authenticate"] = "Bearer"
    if error.retryable:
        more.setdefault("Retry-After", _PAUSE)
    return JSONResponse(describe_error(error), status, headers=more)


def to_error(error: BaseException) -> HeadgateError:
    """Return what ended a request as an error of Headgate; an unexpected one is logged."""
    if isinstance(error, HeadgateError):
        return error
    if isinstance(error, OSError):
        # Without its path, which is one of the server's machine.
        refusal = find_refusal(OSError(error.errno, error.strerror), "cannot answer")
        if refusal is not None:
            return refusal
    _log.error("a request failed", exc_info=error)
    return HeadgateError(
        "INTERNAL",
        f"cannot answer: {type(error).__name__}",
        hint="see the server's standard error",
        domain=Domain.INTERNAL,
    )
