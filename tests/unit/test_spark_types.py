"""Schemas in the JSON that Spark's own types read, checked with PySpark's reader and no JVM."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.types import StructType

from headgate.engine.plan.spark_types import is_known, to_spark_json
from headgate.flow.schemas.schema import (
    Field,
    ListOf,
    MapOf,
    Primitive,
    Schema,
    Struct,
    Unknown,
    schema_of,
)


@dataclass
class Part:
    """Nested."""

    x: float
    y: str | None = "why"


@dataclass
class Row:
    """A field of every kind."""

    whole: int
    real: float
    text: str
    flag: bool
    raw: bytes
    at: datetime
    day: date
    money: Decimal
    parts: list[Part]
    maybe: list[int | None]
    by_name: dict[str, Part | None]
    part: Part | None
    given: int = 7
    listed: list[int] = field(default_factory=lambda: [1])
    nothing: str | None = None


def spark(source: object) -> StructType:
    return StructType.fromJson(to_spark_json(schema_of(source)))  # type: ignore[arg-type]


def test_every_kind_of_field_has_its_spark_type() -> None:
    assert {each.name: each.dataType.simpleString() for each in spark(Row).fields} == {
        "whole": "bigint",
        "real": "double",
        "text": "string",
        "flag": "boolean",
        "raw": "binary",
        "at": "timestamp",
        "day": "date",
        "money": "decimal(38,18)",
        "parts": "array<struct<x:double,y:string>>",
        "maybe": "array<bigint>",
        "by_name": "map<string,struct<x:double,y:string>>",
        "part": "struct<x:double,y:string>",
        "given": "bigint",
        "listed": "array<bigint>",
        "nothing": "string",
    }


@pytest.mark.parametrize("name", ["tinyint", "smallint", "int", "bigint", "float", "decimal(5,2)"])
def test_types_of_ddl_have_the_names_spark_writes(name: str) -> None:
    assert spark(f"a {name}").fields[0].dataType.simpleString() == name


def test_nulls_are_allowed_where_the_schema_allows_them() -> None:
    fields = {each["name"]: each for each in to_spark_json(schema_of(Row))["fields"]}
    assert [name for name, each in fields.items() if each["nullable"]] == ["part", "nothing"]
    assert fields["maybe"]["type"]["containsNull"]
    assert not fields["parts"]["type"]["containsNull"]
    assert fields["by_name"]["type"]["valueContainsNull"]


def test_a_default_travels_as_json_in_the_fields_metadata() -> None:
    fields = {each["name"]: each for each in to_spark_json(schema_of(Row))["fields"]}
    assert fields["given"]["metadata"] == {"headgate.default": "7"}
    assert fields["listed"]["metadata"] == {"headgate.default": "[1]"}
    nested = fields["part"]["type"]["fields"][1]
    assert nested["metadata"] == {"headgate.default": '"why"'}
    for name in ("whole", "nothing"):
        assert fields[name]["metadata"] == {}


def test_the_form_is_json() -> None:
    made = to_spark_json(schema_of(Row))
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(
    "type_",
    [
        Unknown(),
        ListOf(Unknown(), True),
        MapOf(ListOf(Unknown(), True), True),
        Struct((Field("a", Unknown(), True),)),
    ],
)
def test_a_type_that_only_spark_can_tell_is_unknown_at_any_depth(type_: Unknown) -> None:
    schema = Schema((Field("known", Primitive("int"), True), Field("a", type_, True)))
    assert not is_known(schema)
    assert is_known(Schema(schema.fields[:1]))
    with pytest.raises(ValueError, match="no JSON form"):
        to_spark_json(schema)
