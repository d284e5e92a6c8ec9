"""The nodes of a graph as JSON and back, by the types of their fields.

A node and its parts are frozen dataclasses; their JSON is an object with the names of the fields. A
field with a default may be missing, since older releases did not write it.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any

from headgate._units import format_duration, parse_duration
from headgate.flow.formats.format import KINDS, Format
from headgate.flow.json_values import (
    Json,
    JsonObject,
    as_bool,
    as_int,
    as_list,
    as_object,
    as_text,
    bad_json,
    get_text,
    get_value,
)
from headgate.flow.operators.aggregates import Aggregate, NamedAggregate
from headgate.flow.operators.event_time import IDLE_AFTER
from headgate.flow.operators.nodes import Node, Source
from headgate.flow.schemas.schema import Field, Schema
from headgate.flow.schemas.types import field_to_json, fields_from_json
from headgate.flow.topics import Topic, topic_from_json, topic_to_json

_OPERATORS = {kind.operator: kind for kind in typing.get_args(Node)}


def node_to_json(node: Node) -> JsonObject:
    """Return a node as a JSON object, tagged by its operator."""
    return {"operator": node.operator, **_write_fields(node, format_duration)}


def node_from_json(holder: JsonObject) -> Node:
    """Return the node that `node_to_json` wrote."""
    operator = get_text(holder, "operator")
    if operator not in _OPERATORS:
        raise bad_json(f"{operator!r} is not an operator; known: {', '.join(_OPERATORS)}")
    kind = _OPERATORS[operator]
    if kind is Source and holder.get("event_time") is not None:
        # Older releases did not write it, and used what is the default of today.
        holder = {"idle_after": format_duration(IDLE_AFTER), **holder}
    return typing.cast("Node", _read_object(kind, holder))


def to_json(value: Any, span: Callable[[timedelta], Json] = format_duration) -> Json:
    """Return a part of a node as JSON.

    Args:
        span: Returns a duration as JSON.
    """
    match value:
        case timedelta():
            return span(value)
        case StrEnum():
            return value.value
        case tuple():
            return [to_json(entry, span) for entry in value]
        case Schema():
            return value.to_json()
        case Field():
            return field_to_json(value)
        case NamedAggregate(name, aggregate):
            return {"name": name, **_write_fields(aggregate, span)}
        case _ if is_dataclass(value):
            tag = {"type": value.tag} if hasattr(value, "tag") else {}
            return {**tag, **_write_fields(value, span)}
        case _:
            return typing.cast("Json", value)


def _write_fields(value: Any, span: Callable[[timedelta], Json]) -> JsonObject:
    holder: JsonObject = {}
    own_kind: Any = type(value)
    for name, (kind, _) in _fields_of(own_kind).items():
        content = getattr(value, name)
        holder[name] = topic_to_json(content) if kind is Topic else to_json(content, span)
    return holder


def _read_object(kind: type, holder: JsonObject) -> Any:
    return kind(
        **{
            name: _read(inner, get_value(holder, name), repr(name))
            for name, (inner, has_default) in _fields_of(kind).items()
            if name in holder or not has_default
        }
    )


def _read(kind: Any, value: Json, what: str) -> Any:
    """Return a value of a type.

    Args:
        what: The name of the value in error messages.
    """
    if kind in _READERS:
        return _READERS[kind](value, what)
    if typing.get_origin(kind) is tuple:
        entry = typing.get_args(kind)[0]
        inside = f"an entry of {what}"
        return tuple(_read(entry, item, inside) for item in as_list(value, what))
    if isinstance(kind, UnionType):
        return _read_union(typing.get_args(kind), value, what)
    if issubclass(kind, StrEnum):
        if as_text(value, what) not in list(kind):
            raise bad_json(f"{what} must be one of {', '.join(kind)}, got {value!r}")
        return kind(value)
    return _read_object(kind, as_object(value, what))


def _read_union(kinds: tuple[Any, ...], value: Json, what: str) -> Any:
    if NoneType in kinds:
        return None if value is None else _read(kinds[0], value, what)
    by_tag = {kind.tag: kind for kind in kinds}
    holder = as_object(value, what)
    tag = get_text(holder, "type")
    if tag not in by_tag:
        raise bad_json(f"the type of {what} must be one of {', '.join(by_tag)}, got {tag!r}")
    return _read_object(by_tag[tag], holder)


def _read_aggregate(value: Json, what: str) -> NamedAggregate:
    holder = as_object(value, what)
    return NamedAggregate(get_text(holder, "name"), _read_object(Aggregate, holder))


def read_format(value: Json, what: str) -> Format:
    """Return the format that `to_json` wrote."""
    # Release 0.13 wrote the name alone.
    holder: JsonObject = {"type": value} if isinstance(value, str) else as_object(value, what)
    tag = get_text(holder, "type")
    if tag not in KINDS:
        raise bad_json(f"the type of {what} must be one of {', '.join(KINDS)}, got {tag!r}")
    return typing.cast("Format", _read_object(KINDS[tag], holder))


_READERS: dict[Any, Callable[[Json, str], Any]] = {
    str: as_text,
    int: as_int,
    bool: as_bool,
    timedelta: lambda value, what: parse_duration(as_text(value, what)),
    Schema: lambda value, _: Schema.from_json(value),
    Field: lambda value, _: fields_from_json([value])[0],
    Topic: lambda value, what: topic_from_json(as_object(value, what)),
    NamedAggregate: _read_aggregate,
    Format: read_format,
}


@cache
def _fields_of(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field, and whether the field has a default."""
    hints = typing.get_type_hints(kind)
    return {field.name: (hints[field.name], field.default is not MISSING) for field in fields(kind)}
