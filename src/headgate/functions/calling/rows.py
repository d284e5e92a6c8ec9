"""Rows of Arrow as the values that functions take."""

from __future__ import annotations

import dataclasses
import keyword
import typing
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from headgate.functions.stored import RowType

Values = Callable[[pa.Array], list[Any]]

_LONG = pa.int64()
_TIMES = pa.timestamp("us", tz="UTC")
# The time zone that Arrow gives its times.
_ZONE = ZoneInfo("UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=_ZONE)
# Seconds below are exact to the microsecond as a float.
_EXACT = 4_000_000_000_000_000


def row_reader(schema: pa.Schema, row: RowType) -> Callable[[pa.RecordBatch], list[Any]]:
    """Return a function that turns a record batch into what a user's function is called with."""
    columns = [_values(field.type, row.parts.get(field.name, RowType())) for field in schema]
    names = schema.names
    make: Any = row.make
    if _is_in_order(make, names):

        def read_in_order(batch: pa.RecordBatch) -> list[Any]:
            lists = [values(batch.column(i)) for i, values in enumerate(columns)]
            return list(map(make, *lists))

        return read_in_order
    make = _maker(names, row)

    def read(batch: pa.RecordBatch) -> list[Any]:
        lists = [values(batch.column(i)) for i, values in enumerate(columns)]
        return list(map(make, zip(*lists, strict=True)))

    return read


def _is_in_order(make: Any, names: Sequence[str]) -> bool:
    """Return True if a class is a dataclass that takes its fields by position in this order."""
    if make in (None, dict):
        return False
    order = [field.name for field in dataclasses.fields(make) if field.init and not field.kw_only]
    return order[: len(names)] == list(names)


def _maker(names: Sequence[str], row: RowType) -> Callable[[tuple[Any, ...]], Any]:
    """Return how a row is made of its values."""
    make: Any = row.make
    if make is dict:
        return lambda values: dict(zip(names, values, strict=True))
    if make is None:
        return typing.cast("Callable[[tuple[Any, ...]], Any]", _row_class(tuple(names))._make)
    if _is_in_order(make, names):
        return lambda values: make(*values)
    return lambda values: make(**dict(zip(names, values, strict=True)))


def _row_class(names: tuple[str, ...]) -> Any:
    """Return a class of rows: the columns are attributes, and items by name."""
    base = namedtuple("Row", list(names), rename=True)  # type: ignore[misc]
    places = {name: place for place, name in enumerate(names)}

    def get(self: Any, key: Any) -> Any:
        return tuple.__getitem__(self, places[key] if isinstance(key, str) else key)

    return type("Row", (base,), {"__slots__": (), "__getitem__": get})


def as_row(value: Any) -> Any:
    """Return a dict or dataclass as the row that functions without a declared type take."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return _row_class(tuple(value))._make(as_row(part) for part in value.values())
    return [as_row(item) for item in value] if isinstance(value, list) else value


def is_attribute(name: str) -> bool:
    """Return True if a column of a row without a declared type is an attribute."""
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def _values(kind: pa.DataType, row: RowType) -> Values:
    """Return how an array becomes a list of Python values.

    Args:
        row: The type of its structs.
    """
    if pa.types.is_struct(kind):
        return _structs(kind, row)
    if pa.types.is_list(kind):
        return _lists(_values(kind.value_type, row))
    if pa.types.is_map(kind):
        return _maps(_values(kind.item_type, row))
    return column_values(kind)


def column_values(kind: pa.DataType) -> Values:
    """Return how an array without structs in it becomes a list of Python values."""
    if kind == _TIMES:
        return _times
    return lambda array: array.to_pylist()


def _times(array: pa.Array) -> list[Any]:
    """Return times in UTC; Arrow takes ten times as long."""
    make = datetime.fromtimestamp
    return [
        make(time / 1e6, _ZONE)
        if time is not None and 0 <= time < _EXACT
        else (time if time is None else _EPOCH + timedelta(microseconds=time))
        for time in array.view(_LONG).to_pylist()
    ]


def _structs(kind: pa.StructType, row: RowType) -> Values:
    names = [kind.field(i).name for i in range(kind.num_fields)]
    chosen = list(range(len(names)))
    if row.make not in (None, dict):
        wanted = {field.name for field in dataclasses.fields(typing.cast("Any", row.make))}
        chosen = [i for i in chosen if names[i] in wanted]
    make = _maker([names[i] for i in chosen], row)
    parts = [_values(kind.field(i).type, row.parts.get(names[i], RowType())) for i in chosen]

    def read(array: pa.Array) -> list[Any]:
        flat = array.flatten()
        columns = [values(flat[i]) for i, values in zip(chosen, parts, strict=True)]
        rows = map(make, zip(*columns, strict=True))
        if not array.null_count:
            return list(rows)
        is_there = array.is_valid().to_pylist()
        # A dataclass may refuse the nulls inside a struct that is null.
        return [
            make(values) if present else None
            for values, present in zip(zip(*columns, strict=True), is_there, strict=True)
        ]

    return read


def _lists(values: Values) -> Values:
    def read(array: pa.Array) -> list[Any]:
        flat = values(array.flatten())
        return _cut(array, flat, lambda part: part)

    return read


def _maps(values: Values) -> Values:
    def read(array: pa.Array) -> list[Any]:
        offsets = array.offsets.to_pylist()
        first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
        keys = array.keys.slice(first, last - first).to_pylist()
        items = values(array.items.slice(first, last - first))
        out: list[Any] = []
        for start, end, is_there in zip(
            offsets, offsets[1:], array.is_valid().to_pylist(), strict=False
        ):
            span = slice(start - first, end - first)
            out.append(dict(zip(keys[span], items[span], strict=True)) if is_there else None)
        return out

    return read


def _cut(array: pa.Array, flat: list[Any], make: Callable[[list[Any]], Any]) -> list[Any]:
    lengths = array.value_lengths().to_pylist()
    out: list[Any] = []
    at = 0
    for length in lengths:
        if length is None:
            out.append(None)
            continue
        out.append(make(flat[at : at + length]))
        at += length
    return out
