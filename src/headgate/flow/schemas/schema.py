"""Schemas: the columns of a topic or of an operator's output.

The rest of Headgate imports schemas from here: the types, `Schema` and `schema_of`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.errors import HeadgateError
from headgate.flow.json_values import Json, as_list
from headgate.flow.names import did_you_mean, quote, split_path
from headgate.flow.schemas.dataclass_fields import fields_of_dataclass, is_dataclass_type
from headgate.flow.schemas.ddl import parse_ddl
from headgate.flow.schemas.types import (
    MISSING,
    Field,
    ListOf,
    MapOf,
    Missing,
    Primitive,
    Struct,
    Type,
    Unknown,
    check_fields,
    field_to_json,
    fields_from_json,
    fields_to_ddl,
    key_kind,
    type_from_json,
    type_to_ddl,
    type_to_json,
)

__all__ = [
    "MISSING",
    "Field",
    "ListOf",
    "MapOf",
    "Missing",
    "Primitive",
    "Schema",
    "Struct",
    "Type",
    "Unknown",
    "key_kind",
    "schema_of",
    "type_from_json",
    "type_to_ddl",
    "type_to_json",
]


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a row, in order; names are unique, ignoring case."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        check_fields(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def paths(self) -> tuple[str, ...]:
        """The dotted paths of all columns and of all fields in structs."""
        return tuple(_paths(self.fields, ""))

    def find_column(self, name: str) -> Field | None:
        """Return the column with exactly this name, or None."""
        return next((field for field in self.fields if field.name == name), None)

    def find(self, path: str) -> Field | None:
        """Return the field at a dotted path, or None if there is none.

        The path goes into structs, into maps by key and through lists of structs, as in Spark. The
        field is nullable if any step of the path is.
        """
        parts = split_path(path)
        if parts is None:
            return None
        field = self.find_column(parts[0])
        for part in parts[1:]:
            if field is None:
                return None
            field = _step(field, part)
        return field

    def get(self, path: str, *, what: str) -> Field:
        """Return the field at a dotted path, or raise UNKNOWN_COLUMN.

        Args:
            path: A column's name or a dotted path.
            what: Opening words of the error message: "cannot add where 'w'".
        """
        field = self.find(path)
        if field is None:
            raise HeadgateError(
                "UNKNOWN_COLUMN",
                f"{what}: there is no column {path!r}",
                hint=did_you_mean(path, self.paths),
            )
        return field

    def with_fields(self, *fields: Field) -> Schema:
        """Return this schema with columns replaced in place, or added at the end."""
        new = {field.name.lower(): field for field in fields}
        kept = [new.pop(field.name.lower(), field) for field in self.fields]
        return Schema((*kept, *new.values()))

    def to_ddl(self) -> str:
        """Return the schema as readable DDL.

        It omits defaults and the nullability of elements of lists and maps.
        """
        return fields_to_ddl(self.fields)

    def to_json(self) -> list[Json]:
        """Return the schema as plain JSON values."""
        return [field_to_json(field) for field in self.fields]

    @classmethod
    def from_json(cls, value: Json) -> Schema:
        """Return the schema that `to_json` wrote."""
        return cls(fields_from_json(as_list(value, "a schema")))


def schema_of(source: type | str | Schema) -> Schema:
    """Return the schema that a dataclass, a DDL string or a schema describes."""
    if isinstance(source, Schema):
        return source
    if isinstance(source, str):
        return Schema(parse_ddl(source))
    if is_dataclass_type(source):
        return Schema(fields_of_dataclass(source))
    raise HeadgateError(
        "SCHEMA_UNSUPPORTED",
        f"cannot build a schema of {source!r}: it is not a dataclass, a DDL string or a Schema",
        hint="put @dataclass above the class, or write DDL: 'id BIGINT NOT NULL, name STRING'",
    )


def _paths(fields: tuple[Field, ...], prefix: str) -> Iterator[str]:
    for field in fields:
        path = f"{prefix}{quote(field.name)}"
        yield path
        if isinstance(field.type, Struct):
            yield from _paths(field.type.fields, f"{path}.")


def _step(holder: Field, name: str) -> Field | None:
    match holder.type:
        case Struct(fields):
            inner = next((field for field in fields if field.name == name), None)
            return inner and Field(name, inner.type, holder.nullable or inner.nullable)
        case MapOf(value, _):
            return Field(name, value, nullable=True)
        case ListOf(Struct() as element, nullable):
            inner = _step(Field(holder.name, element, nullable), name)
            return inner and Field(name, ListOf(inner.type, inner.nullable), holder.nullable)
        case Unknown():
            return Field(name, Unknown(), nullable=True)
        case _:
            return None
