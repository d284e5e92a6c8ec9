"""The nodes of a graph as JSON, tagged by operator."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from headgate._units import format_duration, parse_duration
from headgate.flow.event_time import IDLE_AFTER
from headgate.flow.json_values import (
    Json,
    JsonObject,
    as_object,
    bad_json,
    find_late_text,
    find_text,
    get_list,
    get_object,
    get_text,
    get_texts,
    get_value,
)
from headgate.flow.operators import (
    Column,
    Dedupe,
    Enrich,
    Load,
    Node,
    Output,
    OutputFormat,
    Port,
    Select,
    Source,
    SourceKind,
    TimeUnit,
    Transform,
    Where,
    Window,
    WithColumns,
)
from headgate.flow.schema import Schema
from headgate.flow.topics import topic_from_json, topic_to_json
from headgate.flow.window_json import (
    aggregate_to_json,
    aggregates_from_json,
    trigger_from_json,
    trigger_to_json,
    windows_from_json,
    windows_to_json,
)

E = TypeVar("E", bound=StrEnum)


def node_to_json(node: Node) -> JsonObject:
    """Return a node as a JSON object."""
    return {"operator": node.operator, "id": node.id, **_fields(node)}


def node_from_json(holder: JsonObject) -> Node:
    """Return the node that `node_to_json` wrote."""
    operator = get_text(holder, "operator")
    if operator not in _READERS:
        raise bad_json(f"{operator!r} is not an operator; known: {', '.join(_READERS)}")
    return _READERS[operator](get_text(holder, "id"), holder)


def _fields(node: Node) -> JsonObject:
    match node:
        case Source():
            lateness = node.out_of_orderness
            return {
                "kind": node.kind.value,
                "topic": topic_to_json(node.topic),
                "schema": node.schema.to_json(),
                "event_time": node.event_time,
                "out_of_orderness": None if lateness is None else format_duration(lateness),
                "key": list(node.key),
                "version": node.version,
                "load": node.load.value,
                "meta": node.meta,
                "idle_after": None if node.idle_after is None else format_duration(node.idle_after),
                "event_time_unit": node.event_time_unit.value,
            }
        case Enrich():
            return {
                "input": _port_to_json(node.input),
                "table": node.table,
                "on": list(node.on),
                "into": node.into,
            }
        case Window():
            return {
                "input": _port_to_json(node.input),
                "key": list(node.key),
                "windows": windows_to_json(node.windows),
                "aggregates": [aggregate_to_json(each) for each in node.aggregates],
                "lateness": format_duration(node.lateness),
                "early": [trigger_to_json(each) for each in node.early],
            }
        case Dedupe():
            return {
                "input": _port_to_json(node.input),
                "by": list(node.by),
                "within": format_duration(node.within),
            }
        case Select() | WithColumns():
            columns: list[Json] = [
                {"name": column.name, "expression": column.expression} for column in node.columns
            ]
            return {"input": _port_to_json(node.input), "columns": columns}
        case Where():
            return {"input": _port_to_json(node.input), "condition": node.condition}
        case Transform():
            return {
                "input": _port_to_json(node.input),
                "function": node.function,
                "schema": node.schema.to_json(),
            }
        case Output():
            return {
                "input": _port_to_json(node.input),
                "topic": topic_to_json(node.topic),
                "key": node.key,
                "format": node.format.value,
            }


def _source(node_id: str, holder: JsonObject) -> Source:
    lateness = find_text(holder, "out_of_orderness")
    return Source(
        node_id,
        topic_from_json(get_object(holder, "topic")),
        Schema.from_json(get_value(holder, "schema")),
        _member(SourceKind, holder, "kind"),
        find_text(holder, "event_time"),
        None if lateness is None else parse_duration(lateness),
        get_texts(holder, "key"),
        find_text(holder, "version"),
        _member(Load, holder, "load"),
        find_late_text(holder, "meta"),
        _idle_after(holder),
        _late_member(TimeUnit, holder, "event_time_unit", TimeUnit.MILLISECONDS),
    )


def _idle_after(holder: JsonObject) -> timedelta | None:
    if "idle_after" not in holder:
        # Written by an older release: the default of today.
        return None if find_text(holder, "event_time") is None else IDLE_AFTER
    text = find_text(holder, "idle_after")
    return None if text is None else parse_duration(text)


def _enrich(node_id: str, holder: JsonObject) -> Enrich:
    return Enrich(
        node_id,
        _port(holder),
        get_text(holder, "table"),
        get_texts(holder, "on"),
        get_text(holder, "into"),
    )


def _window(node_id: str, holder: JsonObject) -> Window:
    return Window(
        node_id,
        _port(holder),
        get_texts(holder, "key"),
        windows_from_json(get_value(holder, "windows")),
        aggregates_from_json(holder),
        parse_duration(get_text(holder, "lateness")),
        tuple(trigger_from_json(each) for each in get_list(holder, "early")),
    )


def _dedupe(node_id: str, holder: JsonObject) -> Dedupe:
    within = parse_duration(get_text(holder, "within"))
    return Dedupe(node_id, _port(holder), get_texts(holder, "by"), within)


def _transform(node_id: str, holder: JsonObject) -> Transform:
    schema = Schema.from_json(get_value(holder, "schema"))
    return Transform(node_id, _port(holder), get_text(holder, "function"), schema)


_READERS: dict[str, Callable[[str, JsonObject], Node]] = {
    Source.operator: _source,
    Enrich.operator: _enrich,
    Window.operator: _window,
    Dedupe.operator: _dedupe,
    Select.operator: lambda node_id, holder: Select(node_id, _port(holder), _columns(holder)),
    Where.operator: lambda node_id, holder: Where(
        node_id, _port(holder), get_text(holder, "condition")
    ),
    WithColumns.operator: lambda node_id, holder: WithColumns(
        node_id, _port(holder), _columns(holder)
    ),
    Transform.operator: _transform,
    Output.operator: lambda node_id, holder: Output(
        node_id,
        _port(holder),
        topic_from_json(get_object(holder, "topic")),
        find_late_text(holder, "key"),
        _late_member(OutputFormat, holder, "format", OutputFormat.JSON),
    ),
}


def _port_to_json(port: Port) -> JsonObject:
    return {"node": port.node, "output": port.output}


def _port(holder: JsonObject) -> Port:
    port = get_object(holder, "input")
    return Port(get_text(port, "node"), get_text(port, "output"))


def _columns(holder: JsonObject) -> tuple[Column, ...]:
    columns = [as_object(value, "a column") for value in get_list(holder, "columns")]
    return tuple(
        Column(get_text(column, "name"), get_text(column, "expression")) for column in columns
    )


def _late_member(kind: type[E], holder: JsonObject, key: str, default: E) -> E:
    """Return a member that graphs of older releases do not have."""
    return default if find_late_text(holder, key) is None else _member(kind, holder, key)


def _member(kind: type[E], holder: JsonObject, key: str) -> E:
    text = get_text(holder, key)
    try:
        return kind(text)
    except ValueError as cause:
        raise bad_json(f"{key!r} must be one of {', '.join(kind)}, got {text!r}") from cause
