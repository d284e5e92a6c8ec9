"""Results of functions as Arrow, strictly: a value fits its column, or the result is refused.

Arrow by itself turns 1.5 into 1, a number into a time, and a time into a date.
"""

from __future__ import annotations

import dataclasses
import operator
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from headgate.functions.calling.messages import array_of
from headgate.functions.calling.rows import is_attribute


class BadResult(TypeError):  # noqa: N818 - a result, and what is wrong with it
    """A result that does not fit the declared columns."""


def row_writer(schema: pa.Schema) -> Callable[[Sequence[Any]], pa.RecordBatch]:
    """Return a function that turns results into a record batch, or raises BadResult.

    A result is a dataclass, a dict or a row; names that are not columns are ignored.
    """
    names = schema.names

    def write(results: Sequence[Any]) -> pa.RecordBatch:
        columns = _columns(results, names)
        arrays = [
            _array(field, values, field.name) for field, values in zip(schema, columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return write


def _columns(rows: Sequence[Any], names: Sequence[str]) -> list[Sequence[Any]]:
    """Return the values of rows, column by column."""
    if not rows:
        return [()] * len(names)
    try:
        return list(zip(*map(_getter(rows[0], names), rows), strict=True))
    except (AttributeError, KeyError, TypeError, IndexError):
        # Rows may be of several types; or one of them is wrong.
        return list(zip(*(_get(row, names) for row in rows), strict=True))


def _get(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
    get = _getter(row, names)
    try:
        return get(row)
    except (AttributeError, KeyError) as error:
        missing = error.args[0] if isinstance(error, KeyError) else error.name
        raise BadResult(f"the result has no {missing!r}: {row!r:.200}") from None


def _getter(row: Any, names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return how the values of a row are read, and of others like it."""
    if isinstance(row, Mapping):
        if len(names) == 1:
            return lambda row: (row[names[0]],)
        return operator.itemgetter(*names)
    if hasattr(row, "_fields") and not all(map(is_attribute, names)):
        return lambda row: tuple(row[name] for name in names)
    if (dataclasses.is_dataclass(row) and not isinstance(row, type)) or hasattr(row, "_fields"):
        if len(names) == 1:
            return lambda row: (getattr(row, names[0]),)
        return operator.attrgetter(*names)
    raise BadResult(
        f"a result must be a dataclass, a dict or a row, got {type(row).__name__}: {row!r:.200}"
    )


def _array(field: pa.Field, values: Sequence[Any], where: str, *, absent: int = 0) -> pa.Array:
    """Return a column.

    Args:
        where: The column in messages; a dotted path inside a struct.
        absent: How many values are missing because the struct around them is null.
    """
    try:
        array = _build(field.type, values, where)
    except BadResult:
        raise
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise BadResult(f"{where!r} must be {field.type}: {error}") from None
    if array.null_count > absent and not field.nullable:
        raise BadResult(f"{where!r} must not be None")
    return array


def _build(kind: pa.DataType, values: Sequence[Any], where: str) -> pa.Array:
    if pa.types.is_struct(kind):
        return _structs(kind, values, where)
    if pa.types.is_list(kind):
        offsets, flat = _flatten(values, _items, where)
        inner = _array(kind.value_field, flat, where)
        return pa.ListArray.from_arrays(offsets, inner, type=kind)
    if pa.types.is_map(kind):
        offsets, flat = _flatten(values, _pairs, where)
        keys = _array(kind.key_field, [key for key, _ in flat], where)
        items = _array(kind.item_field, [item for _, item in flat], where)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind)
    _check_types(kind, values, where)
    return array_of(values, kind, f"column {where!r} of the rows of one call")


def _structs(kind: pa.StructType, values: Sequence[Any], where: str) -> pa.Array:
    fields = [kind.field(i) for i in range(kind.num_fields)]
    present = [value for value in values if value is not None]
    absent = len(values) - len(present)
    columns = _columns(present, [field.name for field in fields])
    is_null = [value is None for value in values] if absent else None
    if is_null is not None:
        columns = [_spread(column, is_null) for column in columns]
    arrays = [
        _array(field, column, f"{where}.{field.name}", absent=absent)
        for field, column in zip(fields, columns, strict=True)
    ]
    mask = None if is_null is None else pa.array(is_null)
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)


def _spread(column: Sequence[Any], is_null: Sequence[bool]) -> list[Any]:
    left = iter(column)
    return [None if gone else next(left) for gone in is_null]


def _flatten(
    values: Sequence[Any], parts: Callable[[Any, str], Iterable[Any]], where: str
) -> tuple[pa.Array, list[Any]]:
    """Return where each value's parts begin, and all parts; a null begins nowhere."""
    flat: list[Any] = []
    offsets: list[int | None] = []
    for value in values:
        offsets.append(None if value is None else len(flat))
        if value is not None:
            flat.extend(parts(value, where))
    return pa.array([*offsets, len(flat)], type=pa.int32()), flat


def _items(value: Any, where: str) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise BadResult(f"{where!r} must be a list, got {type(value).__name__}")
    return typing.cast("Iterable[Any]", value)


def _pairs(value: Any, where: str) -> Iterable[Any]:
    if not isinstance(value, Mapping):
        raise BadResult(f"{where!r} must be a dict, got {type(value).__name__}")
    return value.items()


def _check_types(kind: pa.DataType, values: Sequence[Any], where: str) -> None:
    accepts = next((accepts for is_of, accepts in _ACCEPTED if is_of(kind)), None)
    if accepts is None:
        return
    for given in set(map(type, values)) - {type(None)}:
        if not accepts(given):
            shown = next(value for value in values if type(value) is given)
            raise BadResult(f"{where!r} must be {kind}, got {given.__name__}: {shown!r:.200}")


def _is_integer(kind: type) -> bool:
    # Integers of numpy are none of Python's.
    return hasattr(kind, "__index__") and not _is_bool(kind)


def _is_number(kind: type) -> bool:
    return hasattr(kind, "__float__") and not _is_bool(kind)


def _is_bool(kind: type) -> bool:
    return kind is bool or kind.__name__ in ("bool", "bool_")


# What Arrow would change without a word; it refuses all else that does not fit.
_ACCEPTED: tuple[tuple[Callable[[Any], bool], Callable[[type], bool]], ...] = (
    (pa.types.is_integer, _is_integer),
    (pa.types.is_floating, _is_number),
    (pa.types.is_date, lambda kind: issubclass(kind, date) and not issubclass(kind, datetime)),
    (pa.types.is_timestamp, lambda kind: issubclass(kind, datetime)),
    (pa.types.is_string, lambda kind: issubclass(kind, str)),
    (pa.types.is_binary, lambda kind: issubclass(kind, bytes | bytearray | memoryview)),
)
