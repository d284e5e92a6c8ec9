"""Waiting for a server's long work: an operation is looked at until it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from headgate.client.connection import Connection, find_error
from headgate.errors import Domain, HeadgateError
from headgate.jobs.control.requests import Patience
from headgate.jobs.views.job import JobView

# Sooner at first, since most operations take no time; then as often as a person looks.
_FIRST_LOOK = timedelta(milliseconds=50)
_LOOK_EVERY = timedelta(seconds=1)


def wait_for(
    connection: Connection,
    answer: Any,
    *,
    verb: str,
    patience: Patience | None,
    look: Callable[[], JobView] | None,
) -> Any:
    """Return the result of what was asked for, once it is there, as JSON values.

    Args:
        answer: An operation, or the result itself where the server had it at once.
        verb: What was asked for, as in `cannot wait any longer for job 'a' to stop`.
        look: Returns the job meanwhile, for whoever is told; None where there is no job yet.

    Raises:
        HeadgateError: What the operation failed with, or WAITED_TOO_LONG.
    """
    patience = patience or Patience()
    clock, pause = patience.clock, _FIRST_LOOK
    began = looked = clock.monotonic()
    while is_operation(answer) and answer["state"] == "RUNNING":
        now = clock.monotonic()
        waited = timedelta(seconds=now - began)
        if waited >= patience.longest:
            raise _give_up(connection, verb, patience, look)
        if look is not None and now - looked >= _LOOK_EVERY.total_seconds():
            looked = now
            patience.told(look(), waited)
        clock.sleep(min(pause, patience.longest - waited))
        pause = min(2 * pause, _LOOK_EVERY)
        answer = connection.get("operations", str(answer["id"]))
    if not is_operation(answer):
        return answer
    if answer["state"] == "FAILED":
        raise find_error(answer["error"]) or HeadgateError(
            "SERVER_UNKNOWN",
            f"cannot {verb}: {connection.url} reports a failure without a reason",
            hint="see the server's standard error",
            domain=Domain.EXTERNAL,
        )
    return answer["result"]


def is_operation(answer: Any) -> bool:
    """Tell whether an answer is an operation rather than a result."""
    return isinstance(answer, Mapping) and {"id", "kind", "state", "progress"} <= answer.keys()


def _give_up(
    connection: Connection,
    verb: str,
    patience: Patience,
    look: Callable[[], JobView] | None,
) -> HeadgateError:
    if look is not None:
        return patience.gave_up(look(), verb)
    return HeadgateError(
        "WAITED_TOO_LONG",
        f"cannot wait any longer for {connection.url} to {verb}; the request stays valid",
        hint=f"headgate jobs --server {connection.url}",
        retryable=True,
    )
