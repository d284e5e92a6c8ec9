"""Avro's types with random values, the columns that hold them, and the JSON that rows become."""

from __future__ import annotations

import base64
import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Kind:
    """A type that is written, and a column that reads it.

    Attributes:
        avro: The schema.
        column: The type in DDL.
        values: What fastavro writes.
        shown: From such a value to its JSON.
    """

    avro: Any
    column: str
    values: st.SearchStrategy[Any]
    shown: Callable[[Any], Any] = lambda value: value


def _logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


def _moment(value: datetime) -> str:
    text = value.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00")
    whole, _, micros = text.partition(".")
    if micros == "000000":
        return f"{whole}Z"
    return f"{whole}.{micros.removesuffix('000')}Z"


def _micros(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _narrow(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


_INTS = st.integers(-(2**31), 2**31 - 1)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
_DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(max_size=20)
_BYTES = st.binary(max_size=20)
_MOMENTS = st.datetimes(datetime(1600, 1, 1), datetime(2500, 1, 1), timezones=st.just(UTC))
_DECIMALS = st.decimals(
    Decimal("-9999999999999999.9999"), Decimal("9999999999999999.9999"), places=4
)

PLAIN = [
    Kind("int", "INT", _INTS),
    Kind("int", "BIGINT", _INTS),
    Kind("int", "SMALLINT", st.integers(-(2**15), 2**15 - 1)),
    Kind("int", "TINYINT", st.integers(-128, 127)),
    Kind("int", "DOUBLE", _INTS, float),
    Kind("long", "BIGINT", _LONGS),
    Kind("long", "DOUBLE", _LONGS, float),
    Kind("float", "FLOAT", _FLOATS),
    Kind("float", "DOUBLE", _FLOATS),
    Kind("int", "FLOAT", st.integers(-(2**24), 2**24), float),
    Kind("double", "DOUBLE", _DOUBLES),
    Kind("boolean", "BOOLEAN", st.booleans()),
    Kind("string", "STRING", _TEXTS),
    Kind("bytes", "BINARY", _BYTES, _base64),
    Kind("bytes", "STRING", _TEXTS.map(str.encode), bytes.decode),
    Kind("string", "BINARY", _TEXTS, lambda value: _base64(value.encode())),
    Kind(_logical("string", "uuid"), "STRING", st.uuids(), str),
    Kind(_logical("int", "date"), "DATE", st.dates(), date.isoformat),
    Kind(_logical("int", "date"), "INT", st.dates(), lambda day: (day - date(1970, 1, 1)).days),
    Kind(_logical("long", "timestamp-micros"), "TIMESTAMP", _MOMENTS, _moment),
    Kind(
        _logical("long", "timestamp-millis"),
        "TIMESTAMP",
        _MOMENTS.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
        _moment,
    ),
    Kind(
        _logical("long", "timestamp-micros"),
        "BIGINT",
        _MOMENTS,
        lambda at: (at - _EPOCH) // timedelta(microseconds=1),
    ),
    Kind(
        _logical("long", "local-timestamp-micros"),
        "TIMESTAMP",
        _MOMENTS.map(lambda at: at.replace(tzinfo=None)),
        lambda at: _moment(at.replace(tzinfo=UTC)),
    ),
    Kind(_logical("long", "time-micros"), "BIGINT", st.times(), _micros),
    Kind(
        _logical("int", "time-millis"),
        "INT",
        st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
        lambda at: _micros(at) // 1000,
    ),
    Kind(_logical("bytes", "decimal", precision=20, scale=4), "DECIMAL(20,4)", _DECIMALS),
    Kind(_logical("bytes", "decimal", precision=20, scale=4), "DECIMAL(38,18)", _DECIMALS),
    Kind(_logical("bytes", "decimal", precision=20, scale=4), "BINARY", _DECIMALS, lambda _: ...),
]


class Kinds:
    """Draws kinds of one schema, whose named types have names of their own."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._names = (f"n{number}" for number in itertools.count())

    def any(self, depth: int = 2) -> Kind:
        """Return a kind: of one value, or of several inside it."""
        several = [self._array, self._map, self._record, self._optional] if depth else []
        plain = [self._plain, self._plain, self._enum, self._fixed, self._fixed_decimal]
        return self._draw(st.sampled_from([*plain, *several]))(depth)

    def _plain(self, _: int) -> Kind:
        # A decimal is bytes to those who do not know the type, but its length has no single form.
        return self._draw(st.sampled_from(PLAIN[:-1]))

    def _enum(self, _: int) -> Kind:
        symbols = ["NEW", "PAID", "SENT"]
        schema = {"type": "enum", "name": next(self._names), "symbols": symbols}
        return Kind(schema, "STRING", st.sampled_from(symbols))

    def _fixed(self, _: int) -> Kind:
        schema = {"type": "fixed", "name": next(self._names), "size": 5}
        return Kind(schema, "BINARY", st.binary(min_size=5, max_size=5), _base64)

    def _fixed_decimal(self, _: int) -> Kind:
        base = {"type": "fixed", "name": next(self._names), "size": 12}
        schema = {**base, "logicalType": "decimal", "precision": 20, "scale": 4}
        return Kind(schema, "DECIMAL(20,4)", _DECIMALS)

    def _array(self, depth: int) -> Kind:
        inner = self.any(depth - 1)
        return Kind(
            {"type": "array", "items": inner.avro},
            f"ARRAY<{inner.column}>",
            st.lists(inner.values, max_size=4),
            lambda values: [_shown(inner, value) for value in values],
        )

    def _map(self, depth: int) -> Kind:
        inner = self.any(depth - 1)
        return Kind(
            {"type": "map", "values": inner.avro},
            f"MAP<STRING, {inner.column}>",
            st.dictionaries(_TEXTS, inner.values, max_size=4),
            lambda values: {key: _shown(inner, value) for key, value in values.items()},
        )

    def _record(self, depth: int) -> Kind:
        parts = [
            (f"p{place}", self.any(depth - 1)) for place in range(self._draw(st.integers(1, 3)))
        ]
        columns = ", ".join(f"{name}: {part.column}" for name, part in parts)
        return Kind(
            {
                "type": "record",
                "name": next(self._names),
                "fields": [{"name": name, "type": part.avro} for name, part in parts],
            },
            f"STRUCT<{columns}>",
            st.fixed_dictionaries({name: part.values for name, part in parts}),
            lambda value: {name: _shown(part, value[name]) for name, part in parts},
        )

    def _optional(self, depth: int) -> Kind:
        inner = self.any(depth - 1)
        # A union has no union in it.
        if isinstance(inner.avro, list):
            return inner
        branches = self._draw(st.permutations(["null", inner.avro]))
        return Kind(
            list(branches),
            inner.column,
            st.none() | inner.values,
            lambda value: _shown(inner, value),
        )


def _shown(kind: Kind, value: Any) -> Any:
    return None if value is None else kind.shown(value)


def shown(kind: Kind, value: Any) -> Any:
    """Return the JSON of a value, with numbers as the column has them."""
    return _shown(kind, value)


def same(one: Any, other: Any) -> bool:
    """Return True if two values of JSON are equal; numbers as far as a 32-bit float tells."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other or _close(one, other)
    return bool(one == other)


def _close(one: float, other: float) -> bool:
    try:
        return _narrow(one) == _narrow(other)
    except OverflowError:
        return False


def as_row(value: Any) -> Any:
    """Return the JSON of a row that fastavro has read by the schema of its columns."""
    match value:
        case dict():
            return {name: as_row(part) for name, part in value.items()}
        case list():
            return [as_row(part) for part in value]
        case bytes():
            return _base64(value)
        case datetime():
            return _moment(value)
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
    return value
