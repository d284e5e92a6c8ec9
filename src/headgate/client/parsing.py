"""The values in the answers of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from headgate._codec import decode
from headgate.client.connection import Connection
from headgate.errors import Domain, HeadgateError

_Value = TypeVar("_Value")


def parse(server: Connection, kind: type[_Value], answer: Any) -> _Value:
    """Return the value in a server's answer; the server may be older or newer than this client.

    Raises:
        HeadgateError: SERVER_UNKNOWN if the answer is not such a value.
    """
    return parse_by(server, lambda content: decode(kind, content), answer)


def parse_by(server: Connection, read: Callable[[Any], _Value], answer: Any) -> _Value:
    """Return the value that a function reads from a server's answer.

    Raises:
        HeadgateError: SERVER_UNKNOWN if the function cannot read the answer.
    """
    try:
        return read(answer)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HeadgateError(
            "SERVER_UNKNOWN",
            f"cannot understand {server.url}: its response does not match this release "
            f"({type(error).__name__}: {error}); is this a headgate server of the same "
            "version?",
            hint="headgate --version, here and there",
            domain=Domain.EXTERNAL,
        ) from error
