"""Pulsar's JSON schemas: built from a topic's columns, and compared with a topic's schema.

Pulsar writes them as Avro does. Dates and times are text in our JSON, and so in the schema; bytes
are base64, as in Pulsar's own clients.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from headgate.flow.schemas.schema import (
    Field,
    ListOf,
    MapOf,
    Missing,
    Primitive,
    Schema,
    Struct,
    Type,
    Unknown,
)

JSON = "JSON"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIMAL = re.compile(r"decimal\((?P<precision>[0-9]+),(?P<scale>[0-9]+)\)")
_NULL = "null"
_PRIMITIVES = {
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "boolean": "boolean",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": "string",
    "timestamp": "string",
}
# Kinds whose defaults are written as in our JSON.
_PLAIN = frozenset({"int", "long", "boolean", "float", "double", "string"})
# Further kinds in the schemas of other clients whose JSON columns of a kind read.
_READ_TOO = {"long": ("int",), "double": ("float", "int", "long"), "string": ("enum",)}


def can_write(schema: Schema) -> bool:
    """Return True if columns have a schema: all types are known, and names are plain."""
    return all(_can_write(field) for field in schema.fields)


def json_schema(topic: str, schema: Schema) -> dict[str, Any]:
    """Return the schema that the admin API registers for a topic of these columns."""
    definition = _record(_title(topic), schema.fields)
    return {"type": JSON, "schema": json.dumps(definition), "properties": {}}


def plain_schema(definition: str) -> Any:
    """Return the schema with which the Python client writes JSON texts to a topic."""
    from pulsar import _pulsar
    from pulsar.schema import BytesSchema

    schema = BytesSchema()
    # Bytes are unchanged; only the schema's name differs (pulsar-client 3.13).
    schema._schema_info = _pulsar.SchemaInfo(_pulsar.SchemaType.JSON, JSON, definition)
    return schema


def schema_differences(definition: str, schema: Schema) -> tuple[str, ...]:
    """Return the differences between a registered schema and columns.

    Args:
        definition: The topic's schema, from the admin API.
        schema: The columns of the flow.
    """
    try:
        registered = json.loads(definition)
        known = {field["name"]: field["type"] for field in registered["fields"]}
    except (ValueError, KeyError, TypeError):
        return ("its schema is not a record",)
    return tuple(_differences(known, schema))


def _differences(known: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    for field in schema.fields:
        if field.name not in known:
            yield f"its schema has no column {field.name!r}"
        elif _can_write(field):
            actual, wanted = _kind(known[field.name]), _kind(_type(field.name, field.type))
            if actual != wanted and actual not in _READ_TOO.get(wanted, ()):
                yield f"its schema has column {field.name!r} as {actual} instead of {wanted}"


def _kind(type_: Any) -> str:
    """Return the name of a type, ignoring nullability and record names."""
    match type_:
        case str(name):
            return name
        case list(choices):
            kinds = sorted(_kind(choice) for choice in choices if choice != _NULL)
            return " or ".join(kinds) or _NULL
        case {"logicalType": str(name)}:
            return name
        case {"type": inner}:
            return _kind(inner)
        case _:
            return "an unknown type"


def _can_write(field: Field) -> bool:
    return _NAME.fullmatch(field.name) is not None and _is_known(field.type)


def _is_known(type_: Type) -> bool:
    match type_:
        case Unknown():
            return False
        case ListOf(inner, _) | MapOf(inner, _):
            return _is_known(inner)
        case Struct(fields):
            return all(_can_write(field) for field in fields)
        case Primitive():
            return True


def _record(name: str, fields: tuple[Field, ...]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(name, field) for field in fields]}


def _field(holder: str, field: Field) -> dict[str, Any]:
    written = _type(f"{holder}_{field.name}", field.type)
    default = field.default
    if isinstance(default, Missing) or (default is not None and written not in _PLAIN):
        default = None
        has_default = field.nullable
    else:
        has_default = True
    column: dict[str, Any] = {"name": field.name, "type": written}
    if field.nullable:
        # A default must be of the first type.
        column["type"] = [_NULL, written] if default is None else [written, _NULL]
    return {**column, "default": default} if has_default else column


def _type(name: str, type_: Type) -> Any:
    match type_:
        case Primitive(word):
            decimal = _DECIMAL.fullmatch(word)
            return _PRIMITIVES[word] if decimal is None else _decimal(decimal)
        case ListOf(element, nullable):
            return {"type": "array", "items": _choice(_type(name, element), nullable=nullable)}
        case MapOf(value, nullable):
            return {"type": "map", "values": _choice(_type(name, value), nullable=nullable)}
        case Struct(fields):
            # A name stands for one record, so each record has its own.
            return _record(name, fields)
        case Unknown():
            raise AssertionError(f"the type of {name} is not known")


def _decimal(match: re.Match[str]) -> dict[str, Any]:
    numbers = {name: int(value) for name, value in match.groupdict().items()}
    return {"type": "bytes", "logicalType": "decimal", **numbers}


def _choice(written: Any, *, nullable: bool) -> Any:
    return [_NULL, written] if nullable else written


def _title(topic: str) -> str:
    """Return a topic's name as a record name: `EnrichedOrders` for `enriched-orders`."""
    words = re.findall(r"[A-Za-z0-9]+", topic)
    title = "".join(word[0].upper() + word[1:] for word in words)
    return title if _NAME.fullmatch(title) else f"Topic{title}"
