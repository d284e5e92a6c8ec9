"""What is read is what is written: any value of any schema, from JSON to JSON through a flow."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow, passing
from pyspark.sql import SparkSession

from examples import examples
from headgate import Flow
from headgate.flow.schemas.schema import Field, ListOf, MapOf, Primitive, Schema, Struct, Type

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)


def _shortest(value: float) -> float:
    """Return the number that a float of 32 bits is written as: the shortest that means it."""
    return float(str(np.float32(value)))


def _timestamp(value: datetime) -> str:
    micros = value.microsecond
    precision = "microseconds" if micros % 1000 else "milliseconds" if micros else "seconds"
    return value.isoformat(timespec=precision) + "Z"


# Per type its values, as JSON has them when they are written.
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False).map(
        _shortest
    ),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "string": st.text(st.characters(codec="utf-8"), max_size=12),
    "binary": st.binary(max_size=12).map(lambda each: base64.b64encode(each).decode()),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)).map(date.isoformat),
    "timestamp": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(_timestamp),
    "decimal(38,18)": st.decimals(
        Decimal(-(10**20) + 1), Decimal(10**20 - 1), allow_nan=False, places=18
    ),
    "decimal(5,0)": st.integers(-99999, 99999).map(Decimal),
    "decimal(18,6)": st.decimals(-(10**12) + 1, 10**12 - 1, allow_nan=False, places=6),
}

# A type with the values it has; a value is None where that is allowed.
Typed = tuple[Type, st.SearchStrategy[Any]]


def _primitives() -> st.SearchStrategy[Typed]:
    return st.sampled_from([(Primitive(name), values) for name, values in PRIMITIVES.items()])


def _containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        st.builds(_list, inner, st.booleans()),
        st.builds(_map, inner, st.booleans()),
        _fields(inner).map(_struct),
    )


def _list(inner: Typed, nullable: bool) -> Typed:
    return ListOf(inner[0], nullable), st.lists(_maybe(inner[1], nullable), max_size=3)


def _map(inner: Typed, nullable: bool) -> Typed:
    values = st.dictionaries(NAMES | st.just(""), _maybe(inner[1], nullable), max_size=3)
    return MapOf(inner[0], nullable), values


def _struct(fields: list[tuple[str, Typed, bool]]) -> Typed:
    return Struct(_as_fields(fields)), _rows(fields)


def _fields(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[list[tuple[str, Typed, bool]]]:
    return st.lists(
        st.tuples(NAMES, inner, st.booleans()),
        min_size=1,
        max_size=4,
        unique_by=lambda each: each[0].lower(),
    )


def _as_fields(fields: list[tuple[str, Typed, bool]]) -> tuple[Field, ...]:
    return tuple(Field(name, typed[0], nullable) for name, typed, nullable in fields)


def _rows(fields: list[tuple[str, Typed, bool]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {name: _maybe(typed[1], nullable) for name, typed, nullable in fields}
    )


def _maybe(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nullable else values


TYPES = st.recursive(_primitives(), _containers, max_leaves=6)


@given(st.data())
@settings(max_examples=examples(150))
def test_every_value_of_every_schema_survives_a_flow(
    spark: SparkSession, data: st.DataObject
) -> None:
    fields = data.draw(_fields(TYPES))
    rows = data.draw(st.lists(_rows(fields), min_size=1, max_size=5))
    flow = MemoryFlow(spark, passing(Schema(_as_fields(fields))))
    made = flow.feed("in", *(_encoded(row) for row in rows))
    assert list(made) == ["out"], made
    assert _plain(made["out"]) == _plain(rows)


@given(
    st.lists(
        st.floats(0.001, 9_999_999.999) | st.integers(1, 10**9 - 1).map(lambda cents: cents / 100),
        min_size=1,
        unique=True,
    )
)
@settings(max_examples=examples(50))
def test_a_number_is_written_in_the_fewest_digits_that_mean_it(
    spark: SparkSession, numbers: list[float]
) -> None:
    flow = Flow("failing")
    # A row for which an expression fails becomes a letter that holds its text.
    flow.stream("in", "k DOUBLE, z INT").where("1 / z > 0").to("out")
    values = [*numbers, *(-each for each in numbers)]
    made = MemoryFlow(spark, flow).feed("in", *({"k": each, "z": 0} for each in values))
    written = {base64.b64decode(letter["raw"]).decode() for letter in made["dead-letters"]}
    assert written == {f'{{"k":{each!r},"z":0}}' for each in values}


def _encoded(row: Any) -> bytes:
    # A decimal may be text, which keeps every digit it has.
    return json.dumps(row, ensure_ascii=False, default=lambda each: format(each, "f")).encode()


def _plain(value: Any) -> Any:
    """Return a value with its decimals as JSON's reader here gives them."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case Decimal():
            return float(value)
        case _:
            return value
