"""Event time: the column that says when an event happened, and how late it may come."""

from __future__ import annotations

from datetime import timedelta

from headgate._units import parse_duration
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.flow.schema import Field, Primitive, Schema

_TIMES = frozenset({"int", "bigint", "timestamp"})


def parse_out_of_orderness(
    event_time: str | None, given: str | timedelta, *, what: str
) -> timedelta | None:
    """Return how late an event may come, or None for a stream without event time."""
    duration = parse_duration(given) if isinstance(given, str) else given
    if duration < timedelta(0):
        raise HeadgateError(
            "BAD_DURATION",
            f"{what}: out_of_orderness is negative",
            hint="use out_of_orderness='0s' or more",
        )
    if event_time is not None:
        return duration
    if duration:
        raise HeadgateError(
            "EVENT_TIME_MISSING",
            f"{what}: it has out_of_orderness and no event_time to measure it by",
            hint="name the column: event_time='createdAt'",
        )
    return None


def check_event_time(schema: Schema, column: str, *, what: str) -> None:
    """Refuse a column that is not there, or that cannot hold a time."""
    found = get_column(schema, column, what=what)
    if not (isinstance(found.type, Primitive) and found.type.name in _TIMES):
        raise HeadgateError(
            "BAD_EVENT_TIME",
            f"{what}: event_time {column!r} is neither a whole number of milliseconds "
            "since 1970 nor a timestamp",
            hint="declare the column as int (epoch milliseconds) or datetime",
        )


def get_column(schema: Schema, name: str, *, what: str) -> Field:
    """Return a top-level column by its exact name, or raise UNKNOWN_COLUMN."""
    found = schema.find_column(name)
    if found is None:
        raise HeadgateError(
            "UNKNOWN_COLUMN",
            f"{what}: there is no column {name!r}",
            hint=did_you_mean(name, schema.names),
        )
    return found
