"""Plain forms as columns of Arrow, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from headgate.functions.calling.rows import column_values
from headgate.functions.python_types import Kind, PythonType

Read = Callable[[pa.Array], list[Any]]

_TYPES = {
    Kind.BOOL: pa.bool_(),
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
}
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def arrow_field(name: str, type_: PythonType) -> pa.Field:
    """Return a column for plain forms."""
    return pa.field(name, arrow_type(type_), type_.nullable)


def arrow_type(type_: PythonType) -> pa.DataType:
    """Return the type of a column for plain forms."""
    if type_.kind is Kind.STRUCT:
        return pa.struct([arrow_field(name, inner) for name, inner in type_.fields])
    if type_.element is not None:
        inner = arrow_field("element", type_.element)
        return pa.list_(inner) if type_.kind is Kind.LIST else pa.map_(pa.string(), inner)
    if type_.kind is Kind.INT:
        return _INTEGERS[type_.bits]
    if type_.kind is Kind.FLOAT:
        return pa.float32() if type_.bits == 32 else pa.float64()
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(*type_.digits)
    return _TYPES[type_.kind]


def type_of(field: pa.Field) -> PythonType:
    """Return the type of the values that a column takes."""
    kind, nullable = field.type, field.nullable
    if pa.types.is_struct(kind):
        parts = [kind.field(i) for i in range(kind.num_fields)]
        fields = tuple((part.name, type_of(part)) for part in parts)
        return PythonType(Kind.STRUCT, nullable, fields=fields)
    if pa.types.is_map(kind):
        return PythonType(Kind.MAP, nullable, element=type_of(kind.item_field))
    if pa.types.is_list(kind):
        return PythonType(Kind.LIST, nullable, element=type_of(kind.value_field))
    if pa.types.is_decimal(kind):
        return PythonType(Kind.DECIMAL, nullable, digits=(kind.precision, kind.scale))
    if pa.types.is_integer(kind):
        return PythonType(Kind.INT, nullable, bits=kind.bit_width)
    if pa.types.is_floating(kind):
        return PythonType(Kind.FLOAT, nullable, bits=kind.bit_width)
    for is_of, kind_ in (
        (pa.types.is_boolean, Kind.BOOL),
        (pa.types.is_binary, Kind.BYTES),
        (pa.types.is_date, Kind.DATE),
        (pa.types.is_timestamp, Kind.TIME),
    ):
        if is_of(kind):
            return PythonType(kind_, nullable)
    return PythonType(Kind.TEXT, nullable)


def reader(kind: pa.DataType) -> Read:
    """Return how an array becomes a list of plain forms."""
    if pa.types.is_struct(kind):
        return _structs([reader(kind.field(i).type) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return _maps(reader(kind.key_type), reader(kind.item_type))
    if pa.types.is_list(kind):
        return _lists(reader(kind.value_type))
    return column_values(kind)


def _structs(parts: Sequence[Read]) -> Read:
    def read(array: pa.Array) -> list[Any]:
        columns = [part(column) for part, column in zip(parts, array.flatten(), strict=True)]
        return _without_nulls(list(zip(*columns, strict=True)), array)

    return read


def _lists(part: Read) -> Read:
    def read(array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_pylist()
        first = offsets[0]
        flat = part(array.values.slice(first, offsets[-1] - first))
        out: list[Any] = [
            tuple(flat[start - first : end - first]) for start, end in pairwise(offsets)
        ]
        return _without_nulls(out, array)

    return read


def _without_nulls(values: list[Any], array: pa.Array) -> list[Any]:
    """Return values with None where an array has a null."""
    if not array.null_count:
        return values
    present = array.is_valid().to_pylist()
    return [value if here else None for value, here in zip(values, present, strict=True)]


def _maps(key: Read, item: Read) -> Read:
    def read(array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_pylist()
        first, count = offsets[0], offsets[-1] - offsets[0]
        keys = key(array.keys.slice(first, count))
        pairs = list(zip(keys, item(array.items.slice(first, count)), strict=True))
        out: list[Any] = [
            tuple(pairs[start - first : end - first]) for start, end in pairwise(offsets)
        ]
        return _without_nulls(out, array)

    return read
