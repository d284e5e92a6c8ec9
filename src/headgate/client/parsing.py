"""From what a server told to a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headgate.client.connection import Connection
from headgate.errors import Domain, HeadgateError

_Value = TypeVar("_Value")


def parse(server: Connection, told: Any, read: Callable[[Any], _Value]) -> _Value:
    """Return a value of what a server told; it may be older or newer than this client.

    Raises:
        HeadgateError: SERVER_UNKNOWN if it cannot be understood.
    """
    try:
        return read(told)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HeadgateError(
            "SERVER_UNKNOWN",
            f"cannot understand {server.url}: its answer is not what this release expects "
            f"({type(error).__name__}: {error}); is this a headgate server of the same version?",
            hint="headgate --version, here and there",
            domain=Domain.EXTERNAL,
        ) from error
