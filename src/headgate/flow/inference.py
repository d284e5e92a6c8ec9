"""What each output of a node looks like, from what its inputs look like."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.flow.columns import field_of
from headgate.flow.operators import (
    Enrich,
    Node,
    Output,
    Port,
    Select,
    Source,
    Transform,
    Where,
    WithColumns,
)
from headgate.flow.schema import Field, MapOf, Primitive, Schema, Struct

# Where a record was in its topic, and what came with it: the column `meta` of a stream.
META = Struct(
    (
        Field("topic", Primitive("string"), nullable=True),
        Field("partition", Primitive("int"), nullable=False),
        Field("offset", Primitive("bigint"), nullable=False),
        Field("timestamp", Primitive("timestamp"), nullable=False),
        Field("key", Primitive("string"), nullable=True),
        Field("headers", MapOf(Primitive("string"), nullable=True), nullable=False),
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
        case Transform(schema=schema):
            return {Port(node.id, "out"): schema}
        case Enrich(input=port, table=table, into=into):
            row = Struct(known[Port(table, "out")].fields)
            return {
                Port(node.id, "matched"): known[port].with_fields(Field(into, row, nullable=False)),
                Port(node.id, "missing"): known[port],
            }
        case Select(input=port, columns=columns):
            fields = tuple(field_of(column, known[port]) for column in columns)
            return {Port(node.id, "out"): Schema(fields)}
        case WithColumns(input=port, columns=columns):
            added = [field_of(column, known[port]) for column in columns]
            return {Port(node.id, "out"): known[port].with_fields(*added)}
        case Where(input=port):
            return {Port(node.id, "out"): known[port]}
        case Output():
            return {}
