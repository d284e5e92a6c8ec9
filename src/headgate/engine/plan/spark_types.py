"""Schemas in the JSON form that Spark's own types are written in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headgate.flow.schemas.schema import (
    MISSING,
    Field,
    ListOf,
    MapOf,
    Primitive,
    Schema,
    Struct,
    Type,
    Unknown,
)
from headgate.flow.schemas.types import is_known as is_known_type

# The metadata key of a field's default, for the kernel's decoder.
_DEFAULT = "headgate.default"
_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}


def to_spark_json(schema: Schema) -> dict[str, Any]:
    """Return a schema in the JSON of Spark's `StructType`; all types must be known."""
    return _struct(schema.fields)


def is_known(schema: Schema) -> bool:
    """Return True if every type is known without Spark."""
    return all(is_known_type(field.type) for field in schema.fields)


def _struct(fields: Sequence[Field]) -> dict[str, Any]:
    return {"type": "struct", "fields": [_field(field) for field in fields]}


def _field(field: Field) -> dict[str, Any]:
    has_default = field.default is not MISSING and field.default is not None
    return {
        "name": field.name,
        "type": _type(field.type),
        "nullable": field.nullable,
        "metadata": {_DEFAULT: json.dumps(field.default)} if has_default else {},
    }


def _type(type_: Type) -> Any:
    match type_:
        case Primitive(name):
            return _NAMES.get(name, name)
        case ListOf(element, nullable):
            return {"type": "array", "elementType": _type(element), "containsNull": nullable}
        case MapOf(value, nullable):
            return {
                "type": "map",
                "keyType": "string",
                "valueType": _type(value),
                "valueContainsNull": nullable,
            }
        case Struct(fields):
            return _struct(fields)
        case Unknown():
            raise ValueError("a type that only Spark can determine has no JSON form yet")
