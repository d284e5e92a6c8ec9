"""The types a column may have, as plain values, and their JSON."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from headgate.errors import HeadgateError
from headgate.flow.json_values import (
    Json,
    JsonObject,
    as_object,
    bad_json,
    get_bool,
    get_list,
    get_text,
    get_value,
)
from headgate.flow.names import quote

INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
PRIMITIVES = INTEGERS | {
    "boolean",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
}
_DECIMAL = re.compile(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)")
_KEY_KINDS = frozenset({"boolean", "string", "date", "timestamp"})


class Missing(enum.Enum):
    """The type of MISSING: the field has no default, so a record must contain it."""

    MISSING = "missing"


MISSING = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts, by its name in Spark: `bigint`, `string`, `decimal(10,2)`."""

    name: str

    def __post_init__(self) -> None:
        if self.name in PRIMITIVES:
            return
        match = _DECIMAL.fullmatch(self.name)
        if match is None or not 1 <= int(match[1]) <= 38 or int(match[2]) > int(match[1]):
            raise HeadgateError(
                "SCHEMA_UNSUPPORTED",
                f"cannot use type {self.name!r}: it is not a column type",
                hint=f"use one of {', '.join(sorted(PRIMITIVES))} or decimal(38,18)",
            )


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; `nullable` says whether an element may be null."""

    element: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from strings; `nullable` says whether a value may be null."""

    value: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Struct:
    """A row inside a row: names are unique, ignoring case.

    Only the state of a process has one without fields: `check_fields` refuses it elsewhere.
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        _check_names(self.fields)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A type that only Spark can determine, when the flow is planned."""


Type: TypeAlias = Primitive | ListOf | MapOf | Struct | Unknown


@dataclass(frozen=True, slots=True)
class Field:
    """A named column or part of a struct.

    Attributes:
        name: The name as records spell it.
        type: The type of the values.
        nullable: True if the value may be null.
        default: The value as JSON if a record omits the field; MISSING for none.
    """

    name: str
    type: Type
    nullable: bool
    default: Json | Missing = field(default=MISSING, hash=False)


def check_fields(fields: tuple[Field, ...]) -> None:
    """Refuse an empty row, and two names that differ only by case."""
    if not fields:
        raise HeadgateError(
            "SCHEMA_UNSUPPORTED",
            "cannot build a schema: it has no fields",
            hint="give it at least one field",
        )
    _check_names(fields)


def _check_names(fields: tuple[Field, ...]) -> None:
    seen: dict[str, str] = {}
    for name in (column.name for column in fields):
        if name.lower() in seen:
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"cannot build a schema with columns {seen[name.lower()]!r} and {name!r}: "
                "Spark ignores the case of column names",
                hint="rename one of them",
            )
        seen[name.lower()] = name


def key_kind(type_: Type) -> str | None:
    """Return the kind by which keys of this type are compared, or None if it cannot be a key.

    All integer types are one kind, all decimals one. A type that is not known yet has kind
    "unknown".
    """
    match type_:
        case Unknown():
            return "unknown"
        case Primitive(name) if name in INTEGERS:
            return "integer"
        case Primitive(name) if name.startswith("decimal"):
            return "decimal"
        case Primitive(name) if name in _KEY_KINDS:
            return name
        case _:
            return None


def is_known(type_: Type) -> bool:
    """Return True if a type is known without Spark."""
    match type_:
        case Unknown():
            return False
        case ListOf(element, _):
            return is_known(element)
        case MapOf(value, _):
            return is_known(value)
        case Struct(fields):
            return all(is_known(field.type) for field in fields)
        case _:
            return True


def type_to_ddl(type_: Type) -> str:
    """Return a type as readable DDL; a type that is not known yet is `?`."""
    match type_:
        case Primitive(name):
            return name.upper()
        case ListOf(element, _):
            return f"ARRAY<{type_to_ddl(element)}>"
        case MapOf(value, _):
            return f"MAP<STRING, {type_to_ddl(value)}>"
        case Struct(fields):
            return f"STRUCT<{fields_to_ddl(fields, separator=': ')}>"
        case Unknown():
            return "?"


def fields_to_ddl(fields: Iterable[Field], *, separator: str = " ") -> str:
    """Return fields as readable DDL."""
    return ", ".join(
        f"{quote(column.name)}{separator}{type_to_ddl(column.type)}"
        + ("" if column.nullable else " NOT NULL")
        for column in fields
    )


def type_to_json(type_: Type) -> Json:
    """Return a type as JSON: a primitive is its name, the others are objects."""
    match type_:
        case Primitive(name):
            return name
        case ListOf(element, nullable):
            return {"list": type_to_json(element), "nullable": nullable}
        case MapOf(value, nullable):
            return {"map": type_to_json(value), "nullable": nullable}
        case Struct(fields):
            return {"struct": [field_to_json(column) for column in fields]}
        case Unknown():
            return "unknown"


def type_from_json(value: Json) -> Type:
    """Return the type that `type_to_json` wrote."""
    if value == "unknown":
        return Unknown()
    if isinstance(value, str):
        return Primitive(value)
    holder = as_object(value, "a type")
    if "list" in holder:
        return ListOf(type_from_json(holder["list"]), get_bool(holder, "nullable"))
    if "map" in holder:
        return MapOf(type_from_json(holder["map"]), get_bool(holder, "nullable"))
    if "struct" in holder:
        return Struct(fields_from_json(get_list(holder, "struct")))
    raise bad_json("a type must be a list, map or struct")


def field_to_json(column: Field) -> Json:
    """Return a field as a JSON object; a field without default has no such key."""
    holder: JsonObject = {
        "name": column.name,
        "type": type_to_json(column.type),
        "nullable": column.nullable,
    }
    if not isinstance(column.default, Missing):
        holder["default"] = column.default
    return holder


def fields_from_json(values: list[Json]) -> tuple[Field, ...]:
    """Return the fields that `field_to_json` wrote."""
    holders = [as_object(value, "a field") for value in values]
    return tuple(
        Field(
            get_text(holder, "name"),
            type_from_json(get_value(holder, "type")),
            get_bool(holder, "nullable"),
            holder.get("default", MISSING),
        )
        for holder in holders
    )
