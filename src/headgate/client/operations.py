"""Waiting for a server's operation: it is polled until it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from headgate.client.connection import Connection, find_error
from headgate.errors import Domain, HeadgateError
from headgate.jobs.control.requests import Patience
from headgate.jobs.views.job import JobView

# Most operations end at once; the pause doubles up to once a second.
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
    """Return the result of an operation as JSON values, once it has ended.

    Args:
        answer: The operation, or its result if the server had it at once.
        verb: As in `cannot wait any longer for job 'a' to stop`.
        look: Returns the job meanwhile, for `patience.on_wait`; None if there is no job yet.

    Raises:
        HeadgateError: The error of the operation, or WAITED_TOO_LONG.
    """
    patience = patience or Patience()
    clock, pause = patience.clock, _FIRST_LOOK
    began = looked = clock.monotonic()
    while is_operation(answer) and answer["state"] == "RUNNING":
        now = clock.monotonic()
        waited = timedelta(seconds=now - began)
        if waited >= patience.longest:
            raise _give_up(connection, verb) if look is None else patience.gave_up(look(), verb)
        if look is not None and now - looked >= _LOOK_EVERY.total_seconds():
            looked = now
            patience.on_wait(look(), waited)
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
    """Tell whether a response is an operation rather than a result."""
    return isinstance(answer, Mapping) and {"id", "kind", "state", "progress"} <= answer.keys()


def _give_up(connection: Connection, verb: str) -> HeadgateError:
    return HeadgateError(
        "WAITED_TOO_LONG",
        f"cannot wait any longer for {connection.url} to {verb}; the request stays valid",
        hint=f"headgate jobs --server {connection.url}",
        retryable=True,
    )
