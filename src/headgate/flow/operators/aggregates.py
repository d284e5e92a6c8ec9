"""Aggregates of a window: plain values, and the functions that create them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from headgate.errors import HeadgateError
from headgate.flow.schemas.types import INTEGERS, Field, ListOf, Primitive, Struct, Type, Unknown

_MAX_DIGITS = 38
_MORE_DIGITS = 10


class AggregateKind(enum.StrEnum):
    """How an aggregate combines the values of a column; nulls are ignored."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    FIRST = "first"
    LAST = "last"
    COUNT_DISTINCT = "count-distinct"
    APPROX_COUNT_DISTINCT = "approx-count-distinct"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a window.

    Attributes:
        column: A column or a dotted path; None counts rows.
        limit: The maximum number of values that `collect` keeps; None for the others.
    """

    kind: AggregateKind
    column: str | None = None
    limit: int | None = None

    def describe(self) -> str:
        """Return the aggregate much as the user wrote it."""
        more = "" if self.limit is None else f", {self.limit}"
        return f"{self.kind.value.replace('-', '_')}({self.column or ''}{more})"


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    """An aggregate and the name of its result column."""

    name: str
    aggregate: Aggregate


def count(column: str | None = None) -> Aggregate:
    """Count events, or the events in which a column is not null."""
    return Aggregate(AggregateKind.COUNT, column)


def sum(column: str) -> Aggregate:  # noqa: A001 - the word for it
    """Add up a numeric column; an integer overflow gives null."""
    return Aggregate(AggregateKind.SUM, column)


def min(column: str) -> Aggregate:  # noqa: A001 - the word for it
    """Take the smallest value of a column."""
    return Aggregate(AggregateKind.MIN, column)


def max(column: str) -> Aggregate:  # noqa: A001 - the word for it
    """Take the largest value of a column."""
    return Aggregate(AggregateKind.MAX, column)


def avg(column: str) -> Aggregate:
    """Take the mean of a numeric column."""
    return Aggregate(AggregateKind.AVG, column)


def first(column: str) -> Aggregate:
    """Take the value of the earliest event, by event time."""
    return Aggregate(AggregateKind.FIRST, column)


def last(column: str) -> Aggregate:
    """Take the value of the latest event, by event time."""
    return Aggregate(AggregateKind.LAST, column)


def count_distinct(column: str) -> Aggregate:
    """Count the distinct values of a column exactly; state holds every value."""
    return Aggregate(AggregateKind.COUNT_DISTINCT, column)


def approx_count_distinct(column: str) -> Aggregate:
    """Estimate the number of distinct values within about 2 %, in at most 4 KiB of state."""
    return Aggregate(AggregateKind.APPROX_COUNT_DISTINCT, column)


def collect(column: str, limit: int) -> Aggregate:
    """Keep the first values of a column to arrive, up to a limit; structs work too."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise HeadgateError(
            "BAD_AGGREGATE",
            f"cannot collect {column!r}: limit must be a positive integer, got {limit!r}",
            hint=f"give the number of values to keep: collect({column!r}, 100)",
        )
    return Aggregate(AggregateKind.COLLECT, column, limit)


def result_field(named: NamedAggregate, column: Field | None) -> Field | None:
    """Return the field that an aggregate produces, or None if it does not support the column's
    type.

    Args:
        column: The aggregate's column; None if it counts rows.
    """
    type_ = _result_type(named.aggregate.kind, None if column is None else column.type)
    if type_ is None:
        return None
    never_null = named.aggregate.kind in _NEVER_NULL
    return Field(named.name, type_, nullable=not never_null)


_NEVER_NULL = frozenset(
    {
        AggregateKind.COUNT,
        AggregateKind.COUNT_DISTINCT,
        AggregateKind.APPROX_COUNT_DISTINCT,
        AggregateKind.COLLECT,
    }
)


def _result_type(kind: AggregateKind, type_: Type | None) -> Type | None:
    if kind is AggregateKind.COUNT:
        return Primitive("bigint")
    if isinstance(type_, Unknown):
        return Unknown()
    if isinstance(type_, Struct) and kind is AggregateKind.COLLECT:
        return ListOf(type_, nullable=False)
    if not isinstance(type_, Primitive) or type_.name == "binary":
        return None
    match kind:
        case AggregateKind.SUM:
            return _sum_type(type_)
        case AggregateKind.AVG:
            return None if _sum_type(type_) is None else Primitive("double")
        case AggregateKind.COUNT_DISTINCT | AggregateKind.APPROX_COUNT_DISTINCT:
            return Primitive("bigint")
        case AggregateKind.COLLECT:
            return ListOf(type_, nullable=False)
        case _:
            return type_


def _sum_type(type_: Primitive) -> Primitive | None:
    if type_.name in INTEGERS:
        return Primitive("bigint")
    if type_.name in ("float", "double"):
        return Primitive("double")
    if not type_.name.startswith("decimal"):
        return None
    digits, scale = map(int, type_.name.removeprefix("decimal(").removesuffix(")").split(","))
    wider = digits + _MORE_DIGITS
    return Primitive(f"decimal({wider if wider < _MAX_DIGITS else _MAX_DIGITS},{scale})")
