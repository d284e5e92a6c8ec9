"""The schema of each output of a node, derived from its inputs."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.flow.graph.unions import united_schema
from headgate.flow.names import quote
from headgate.flow.operators.aggregates import result_field
from headgate.flow.operators.columns import field_of
from headgate.flow.operators.nodes import (
    CORRECTION,
    FAILURE,
    PARTIAL,
    PROCESSED_AT,
    WINDOW_END,
    WINDOW_START,
    AsyncCall,
    Call,
    Dedupe,
    Enrich,
    Filter,
    Join,
    Label,
    Node,
    Output,
    Port,
    Process,
    Rebalance,
    Select,
    Source,
    Transform,
    Union,
    Where,
    Window,
    WithColumns,
    key_names,
)
from headgate.flow.schemas.schema import Field, ListOf, MapOf, Primitive, Schema, Struct
from headgate.flow.schemas.types import Unknown

# The column `meta` of a stream: a record's position in its topic, and its metadata.
META = Struct(
    (
        Field("topic", Primitive("string"), nullable=True),
        Field("partition", Primitive("int"), nullable=False),
        Field("offset", Primitive("bigint"), nullable=False),
        Field("timestamp", Primitive("timestamp"), nullable=False),
        Field("key", Primitive("string"), nullable=True),
        Field("headers", MapOf(Primitive("string"), nullable=True), nullable=False),
        Field("event_time", Primitive("timestamp"), nullable=True),
    )
)

_FAILURE = Struct(
    (
        Field("error", Primitive("string"), nullable=False),
        Field("attempts", Primitive("int"), nullable=False),
    )
)


def output_schemas(node: Node, known: Mapping[Port, Schema]) -> dict[Port, Schema]:
    """Return the schema of each output of a node.

    Args:
        node: Any node; its inputs are in `known`.
        known: The schemas of every port before it.
    """
    match node:
        case Source(schema=schema, meta=meta):
            place = () if meta is None else (Field(meta, META, nullable=False),)
            return {Port(node.id, "out"): schema.with_fields(*place)}
        case Filter(input=port) | Where(input=port) | Rebalance(input=port):
            return {Port(node.id, "out"): known[port]}
        case AsyncCall(input=port, schema=schema):
            failure = Field(FAILURE, _FAILURE, nullable=False)
            return {
                Port(node.id, "ok"): schema,
                Port(node.id, "failed"): known[port].with_fields(failure),
            }
        case Transform(schema=schema) | Call(schema=schema):
            return {Port(node.id, "out"): schema}
        case Enrich(input=port, table=table, into=into):
            row = Struct(known[Port(table, "out")].fields)
            return {
                Port(node.id, "matched"): known[port].with_fields(Field(into, row, nullable=False)),
                Port(node.id, "missing"): known[port],
            }
        case Window(input=port):
            return {
                Port(node.id, "updates"): _updates(node, known[port]),
                Port(node.id, "late"): known[port],
            }
        case Dedupe(input=port):
            return {Port(node.id, output): known[port] for output in node.outputs}
        case Join(input=port, right=right):
            return _joined(node, known[port], known[right])
        case Union(inputs=ports):
            return {Port(node.id, "out"): united_schema([known[port] for port in ports])}
        case Label(input=port, table=table, label=label, into=into):
            found = _found(known[Port(table, "out")], quote(label))
            labels = Field(into, ListOf(found.type, nullable=True), nullable=False)
            return {Port(node.id, "out"): known[port].with_fields(labels)}
        case Process(schema=schema):
            sides = {Port(node.id, side.name): side.schema for side in node.sides}
            return {Port(node.id, "out"): schema, **sides}
        case Select(input=port, columns=columns):
            fields = tuple(field_of(column, known[port]) for column in columns)
            return {Port(node.id, "out"): Schema(fields)}
        case WithColumns(input=port, columns=columns):
            added = [field_of(column, known[port]) for column in columns]
            return {Port(node.id, "out"): known[port].with_fields(*added)}
        case Output():
            return {}


def _joined(node: Join, left: Schema, right: Schema) -> dict[Port, Schema]:
    row = Field(node.into, Struct(right.fields), nullable=False)
    late = (
        Field("side", Primitive("string"), nullable=False),
        Field("left", Struct(left.fields), nullable=True),
        Field("right", Struct(right.fields), nullable=True),
    )
    return {
        Port(node.id, "matched"): left.with_fields(row),
        Port(node.id, "left_only"): left,
        Port(node.id, "right_only"): right,
        Port(node.id, "late"): Schema(late),
    }


def _updates(node: Window, events: Schema) -> Schema:
    keys = [
        Field(name, _found(events, path).type, nullable=False)
        for name, path in zip(key_names(node), node.key, strict=True)
    ]
    figures = [
        result_field(
            named,
            None if (path := named.aggregate.column) is None else _found(events, path),
        )
        for named in node.aggregates
    ]
    time, flag = Primitive("timestamp"), Primitive("boolean")
    return Schema(
        (
            *keys,
            Field(WINDOW_START, time, nullable=False),
            Field(WINDOW_END, time, nullable=False),
            *(figure for figure in figures if figure is not None),
            Field(PARTIAL, flag, nullable=False),
            Field(CORRECTION, flag, nullable=False),
            Field(PROCESSED_AT, time, nullable=False),
        )
    )


def _found(schema: Schema, path: str) -> Field:
    return schema.find(path) or Field(path, Unknown(), nullable=True)
