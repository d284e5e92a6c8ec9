"""Unions: streams whose rows have the same columns, and what their rows look like together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from headgate.errors import HeadgateError
from headgate.flow.names import quote
from headgate.flow.operators.nodes import Port, Union
from headgate.flow.schemas.schema import Schema
from headgate.flow.schemas.types import Field, ListOf, MapOf, Struct, Type, Unknown, type_to_ddl


def check_streams(are_streams: Iterable[bool], *, tables: bool, what: str) -> None:
    """Refuse a union with nothing, or with other values than streams of the flow.

    Args:
        are_streams: Whether each value is a stream of the flow.
        tables: Whether one of them is a table.
        what: Opening words of the error message.
    """
    judged = list(are_streams)
    if judged and all(judged):
        return
    given = "nothing" if not judged else "a table" if tables else "another value"
    raise HeadgateError(
        "BAD_UNION",
        f"{what}: it needs streams of this flow, got {given}",
        hint="read a topic as a stream to union it: flow.stream('returns', Order)",
    )


def check_union(node: Union, schemas: Mapping[Port, Schema], *, what: str) -> None:
    """Refuse a stream that occurs twice, and streams with different columns.

    Types that only Spark can determine are compared when the flow is planned.
    """
    first, *others = node.inputs
    twice = next((port for at, port in enumerate(node.inputs) if port in node.inputs[:at]), None)
    if twice is not None or not others:
        problem = f"{str(twice)!r} occurs twice" if others else "it has a single stream"
        raise HeadgateError(
            "BAD_UNION",
            f"{what}: {problem}",
            hint="name each stream once; to duplicate rows, use flat_map",
        )
    for other in others:
        differences = list(_differences(schemas[first], schemas[other]))
        if differences:
            raise HeadgateError(
                "BAD_UNION",
                f"{what}: the columns of {str(other)!r} differ from those of {str(first)!r}: "
                + "; ".join(differences),
                hint=f"give it the same columns: {_selection(schemas[first], schemas[other])}",
            )


def united_schema(schemas: Sequence[Schema]) -> Schema:
    """Return the columns of rows of several streams, in the order of the first.

    A column may be null if it may be null in any of them.
    """
    first, *others = schemas
    return Schema(tuple(_united(field, others) for field in first.fields))


def _united(field: Field, schemas: Sequence[Schema]) -> Field:
    for schema in schemas:
        other = schema.find_column(field.name)
        if other is not None:
            field = _merged(field, other) or field
    return field


def _differences(first: Schema, other: Schema) -> Iterator[str]:
    for field in first.fields:
        same = other.find_column(field.name)
        if same is None:
            yield f"{quote(field.name)} is missing"
        elif _merged(field, same) is None:
            needed, actual = type_to_ddl(field.type), type_to_ddl(same.type)
            yield f"{quote(field.name)} is {actual} instead of {needed}"
    for field in other.fields:
        if first.find_column(field.name) is None:
            yield f"{quote(field.name)} is extra"


def _selection(first: Schema, other: Schema) -> str:
    """Return a select that gives rows the columns of the first stream."""
    columns = []
    for field in first.fields:
        name, same = quote(field.name), other.find_column(field.name)
        if same is not None and _merged(field, same) is not None:
            columns.append(name)
        else:
            value = "NULL" if same is None else name
            columns.append(f"CAST({value} AS {type_to_ddl(field.type)}) AS {name}")
    return f".select({', '.join(map(repr, columns))})"


def _merged(field: Field, other: Field) -> Field | None:
    """Return a field for the values of both, or None if their types differ."""
    if field.name != other.name:
        return None
    merged = _merged_type(field.type, other.type)
    if merged is None:
        return None
    return replace(field, type=merged, nullable=field.nullable or other.nullable)


def _merged_type(one: Type, other: Type) -> Type | None:
    match one, other:
        case (Unknown(), known) | (known, Unknown()):
            return known
        case ListOf(element, nullable), ListOf(others, may_be_null):
            merged = _merged_type(element, others)
            return None if merged is None else ListOf(merged, nullable or may_be_null)
        case MapOf(value, nullable), MapOf(others, may_be_null):
            merged = _merged_type(value, others)
            return None if merged is None else MapOf(merged, nullable or may_be_null)
        case Struct(fields), Struct(others) if len(fields) == len(others):
            parts = [_merged(field, part) for field, part in zip(fields, others, strict=True)]
            merged_parts = tuple(part for part in parts if part is not None)
            return Struct(merged_parts) if len(merged_parts) == len(parts) else None
        case _:
            return one if one == other else None
