"""The state of a join: the columns of both sides, and whether older rows can be read."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Join, Port
from headgate.flow.schemas.changes import difference, only_adds
from headgate.flow.schemas.schema import Field, Schema, Struct, key_kind
from headgate.flow.schemas.types import is_known


def known_columns(node: Join, schemas: Mapping[Port, Schema]) -> tuple[Schema, ...]:
    """Return the columns of both sides as one schema; none if only Spark knows some of the types.

    The kernel refuses state of other columns, if they are not known here.
    """
    sides = {"left": schemas[node.input], "right": schemas[node.right]}
    if not all(is_known(field.type) for side in sides.values() for field in side.fields):
        return ()
    fields = (Field(name, Struct(side.fields), nullable=True) for name, side in sides.items())
    return (Schema(tuple(fields)),)


def unreadable_columns(old: Join, before: Graph, new: Join, now: Graph) -> list[str]:
    """Return a line for each change after which stored rows cannot be read.

    Columns may be added, each nullable or with a default.
    """
    if not known_columns(old, before.schemas()) or not known_columns(new, now.schemas()):
        return []
    ports = {"left": (old.input, new.input), "right": (old.right, new.right)}
    changes: list[str] = []
    for side, (port, other) in ports.items():
        stored, columns = before.schema_of(port), now.schema_of(other)
        if stored != columns and not only_adds(stored, columns):
            changes += [f"{side}: {line}" for line in difference(stored, columns)]
    return changes


def describe_join(node: Join, graph: Graph) -> str:
    """Return in words what a join keeps, with the kinds of its key columns."""
    left, right = graph.schema_of(node.input), graph.schema_of(node.right)
    own = ", ".join(_with_kind(path, left) for path in node.on)
    others = ", ".join(_with_kind(path, right) for path in node.right_on)
    return f"rows of two streams by {own}" + ("" if own == others else f" and {others}")


def _with_kind(path: str, schema: Schema) -> str:
    field = schema.find(path)
    return path if field is None else f"{path} ({key_kind(field.type)})"
