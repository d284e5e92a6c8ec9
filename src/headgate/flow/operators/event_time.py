"""Event time: the column with an event's time, and how late an event may arrive."""

from __future__ import annotations

from datetime import timedelta

from headgate._units import parse_duration
from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.flow.operators.nodes import TimeUnit
from headgate.flow.schemas.schema import Field, Primitive, Schema

# How long a stream without records holds back the others, by default.
IDLE_AFTER = timedelta(seconds=30)
_TIMES = frozenset({"int", "bigint", "timestamp", "string"})
# Only if the unit is seconds, where the number may have a fraction.
_FRACTIONS = "double"


def parse_wait(given: str | timedelta, *, name: str, what: str) -> timedelta:
    """Return a duration that a user gave; it must not be negative.

    Args:
        name: The argument's name, for the error message.
        what: Opening words of the error message.
    """
    duration = parse_duration(given) if isinstance(given, str) else given
    if duration < timedelta(0):
        raise HeadgateError(
            "BAD_DURATION", f"{what}: {name} must not be negative", hint=f"use {name}='0s' or more"
        )
    return duration


def parse_out_of_orderness(
    event_time: str | None, given: str | timedelta, *, what: str
) -> timedelta | None:
    """Return how late an event may arrive, or None for a stream without event time."""
    duration = parse_wait(given, name="out_of_orderness", what=what)
    if event_time is None and duration:
        raise HeadgateError(
            "EVENT_TIME_MISSING",
            f"{what}: out_of_orderness needs an event_time",
            hint="name the column: event_time='createdAt'",
        )
    return None if event_time is None else duration


def parse_idle_after(
    event_time: str | None, given: str | timedelta | None, *, what: str
) -> timedelta | None:
    """Return how long a silent stream holds back event time, or None for no limit."""
    if event_time is None or given is None:
        return None
    duration = parse_duration(given) if isinstance(given, str) else given
    if duration <= timedelta(0):
        raise HeadgateError(
            "BAD_DURATION",
            f"{what}: idle_after must be greater than zero",
            hint="use idle_after='30s', or idle_after=None to wait for ever",
        )
    return duration


def check_event_time(schema: Schema, column: str, unit: TimeUnit, *, what: str) -> None:
    """Refuse a column that does not exist or cannot hold a time."""
    field = get_column(schema, column, what=what)
    name = field.type.name if isinstance(field.type, Primitive) else ""
    if name not in _TIMES and not (name == _FRACTIONS and unit is TimeUnit.SECONDS):
        raise HeadgateError(
            "BAD_EVENT_TIME",
            f"{what}: event_time {column!r} must be an integer, a timestamp or text",
            hint="declare the column as int (epoch milliseconds), datetime or str (ISO 8601)",
        )


def get_column(schema: Schema, name: str, *, what: str) -> Field:
    """Return a top-level column by its exact name, or raise UNKNOWN_COLUMN."""
    column = schema.find_column(name)
    if column is None:
        raise HeadgateError(
            "UNKNOWN_COLUMN",
            f"{what}: there is no column {name!r}",
            hint=did_you_mean(name, schema.names),
        )
    return column
