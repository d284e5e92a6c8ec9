"""The types of a table's columns for the columns of a flow. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import HeadgateError
from headgate.flow.schemas.schema import ListOf, MapOf, Primitive, Schema, Struct, Type

_TYPES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "boolean": "boolean",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
}


def create_statement(schema: str, table: str, columns: Schema, key: Sequence[str]) -> str:
    """Return the statement that creates a table for rows.

    Raises:
        HeadgateError: TABLE_NOT_CREATED: the type of a column is known to Spark alone.
    """
    lines = []
    for column in columns.fields:
        type_ = column_type(column.type)
        if type_ is None:
            raise HeadgateError(
                "TABLE_NOT_CREATED",
                f"cannot create table {schema}.{table}: the type of column {column.name!r} is "
                "known when the flow runs, and not before",
                hint=f"create the table with any client: CREATE TABLE {schema}.{table} (…)",
            )
        is_required = not column.nullable or column.name in key
        lines.append(f"{quoted(column.name)} {type_}{' NOT NULL' if is_required else ''}")
    if key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    return f"CREATE TABLE {quoted(schema)}.{quoted(table)} ({', '.join(lines)})"


def column_type(type_: Type) -> str | None:
    """Return the type of a column that holds every value; None if that is not known."""
    match type_:
        case Primitive(name) if name.startswith("decimal"):
            return name.replace("decimal", "numeric")
        case Primitive(name):
            return _TYPES[name]
        case ListOf(Primitive("binary"), _):
            return "jsonb"
        case ListOf(Primitive() as element, _):
            return f"{column_type(element)}[]"
        case ListOf() | MapOf() | Struct():
            return "jsonb"
        case _:
            return None


def quoted(name: str) -> str:
    """Return a name for SQL."""
    return '"' + name.replace('"', '""') + '"'
