"""A call of an async function, as a user writes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from headgate._units import parse_duration
from headgate.errors import HeadgateError
from headgate.flow.operators.nodes import AsyncCall, Port
from headgate.flow.schemas.schema import Schema
from headgate.flow.schemas.signatures import read_signature, result_schema
from headgate.functions.stored import Callback, describe

_MOST_CAPACITY, _MOST_RETRIES = 10_000, 100
_MILLISECOND, _LONGEST = timedelta(milliseconds=1), timedelta(hours=1)


def call_node(
    uid: str,
    port: Port,
    function: Callable[[Any], Awaitable[Any]],
    rows: Schema,
    *,
    schema: type | str | Schema | None,
    capacity: int,
    timeout: str | timedelta,
    retries: int,
    ordered: bool,
    what: str,
) -> tuple[AsyncCall, Callback]:
    """Return the node of a call and its function, or refuse what was given.

    Args:
        rows: The columns of the rows that the function is called with.
        what: Opening words of an error message.
    """
    described = describe(function, what=what, is_async=True)
    signature = read_signature(function, rows, what=what)
    node = AsyncCall(
        uid,
        port,
        described,
        result_schema(signature, schema, many=False, what=what),
        signature.columns,
        capacity=_number(capacity, "capacity", 1, _MOST_CAPACITY, what),
        timeout=_timeout(timeout, what),
        retries=_number(retries, "retries", 0, _MOST_RETRIES, what),
        ordered=bool(ordered),
    )
    return node, Callback(function, signature.argument)


def _number(given: int, name: str, least: int, most: int, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: {name} must be an integer from {least} to {most}, got {given!r}",
            hint=f"use {name}={max(least, 3)}",
        )
    return given


def _timeout(given: str | timedelta, what: str) -> timedelta:
    timeout = parse_duration(given) if isinstance(given, str) else given
    if not _MILLISECOND <= timeout <= _LONGEST or timeout % _MILLISECOND:
        raise HeadgateError(
            "BAD_DURATION",
            f"{what}: timeout must be from 1ms to 1h, in whole milliseconds, got {given!r}",
            hint="use timeout='2s'",
        )
    return timeout
