"""The interval join of two streams, as a user writes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headgate.errors import HeadgateError
from headgate.flow.operators.event_time import parse_wait
from headgate.flow.operators.nodes import Join, Port

_MILLISECOND = timedelta(milliseconds=1)


def join_node(
    uid: str,
    left: Port,
    right: Port,
    *,
    on: str | Sequence[str],
    right_on: str | Sequence[str] | None,
    within: str | timedelta | None,
    before: str | timedelta | None,
    after: str | timedelta | None,
    into: str,
    what: str,
) -> Join:
    """Return the node of a join, or refuse its bounds.

    Args:
        what: Opening words of the error message.
    """
    if (within is None) is (before is None and after is None):
        raise HeadgateError(
            "BAD_JOIN",
            f"{what}: it needs either within, or before and after, got "
            f"within={within!r}, before={before!r}, after={after!r}",
            hint="use within='15m' for both directions, or before='5m', after='15m'",
        )
    columns = _columns(on)
    return Join(
        uid,
        left,
        right,
        columns,
        columns if right_on is None else _columns(right_on),
        _bound(
            before if within is None else within, "before" if within is None else "within", what
        ),
        _bound(after if within is None else within, "after" if within is None else "within", what),
        into,
    )


def not_a_stream(*, is_table: bool, what: str) -> HeadgateError:
    """Return the error for a right side that is not a stream of the flow."""
    return HeadgateError(
        "BAD_JOIN",
        f"{what}: it needs a stream of this flow, got {'a table' if is_table else 'another value'}",
        hint="use enrich for a table: .enrich('with-user', users, on='userId', into='user')"
        if is_table
        else "create it with this flow: flow.stream('payments', Payment, event_time='at')",
    )


def _columns(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _bound(given: str | timedelta | None, name: str, what: str) -> timedelta:
    bound = parse_wait("0s" if given is None else given, name=name, what=what)
    if bound % _MILLISECOND:
        raise HeadgateError(
            "BAD_DURATION",
            f"{what}: {name} must be a whole number of milliseconds, got {given!r}",
            hint=f"use a duration such as {name}='15m' or {name}='45s'",
        )
    return bound
