"""Avro: what fastavro writes is read, what is written fastavro reads, and all else is refused."""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import fastavro
import pytest
from avro_values import Kinds, as_row, same, shown
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession
from schema_registry import SchemaRegistry

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate.formats import Avro, Registry

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def served() -> Iterator[SchemaRegistry]:
    """Give a registry to the tests of this file."""
    with SchemaRegistry(level="NONE").serving() as registry:
        yield registry


def framed(id_: int, schema: Any, value: Any) -> bytes:
    """Return a record in the wire format of a registry."""
    return b"\0" + id_.to_bytes(4, "big") + bare(schema, value)


def bare(schema: Any, value: Any) -> bytes:
    """Return a record as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def unframed(registry: SchemaRegistry, record: bytes) -> Any:
    """Return a record's value as fastavro reads it."""
    assert record[0] == 0
    schema = registry.get(int.from_bytes(record[1:5], "big"))
    return read_bare(schema, record[5:])


def read_bare(schema: Any, record: bytes, reader: Any = None) -> Any:
    """Return a value as fastavro reads it, which must be all of the record."""
    source = io.BytesIO(record)
    of_reader = None if reader is None else fastavro.parse_schema(reader)
    value = fastavro.schemaless_reader(source, fastavro.parse_schema(schema), of_reader)
    assert source.tell() == len(record), "bytes behind the value"
    return value


def feed(memory: MemoryFlow, records: Sequence[bytes]) -> dict[str, list[bytes]]:
    """Run one batch of records of the source `in`."""
    return memory.records(
        MemoryRecord("in", record, sequence=place, offset=place)
        for place, record in enumerate(records)
    )


def record_of(fields: Any, name: str = "row") -> dict[str, Any]:
    """Return the schema of a record."""
    return {"type": "record", "name": name, "fields": fields}


@settings(max_examples=30)
@given(data=st.data())
def test_every_type_is_read_and_written_as_fastavro_does(
    spark: SparkSession, served: SchemaRegistry, data: st.DataObject
) -> None:
    kinds = data.draw(st.composite(Kinds)())
    written = [(f"f{place}", kinds.any()) for place in range(data.draw(st.integers(1, 5)))]
    schema = record_of([{"name": name, "type": kind.avro} for name, kind in written])
    rows = data.draw(
        st.lists(
            st.fixed_dictionaries({name: kind.values for name, kind in written}),
            min_size=1,
            max_size=5,
        )
    )
    wanted = data.draw(st.lists(st.sampled_from(written), min_size=1, unique_by=lambda one: one[0]))
    columns = ", ".join(f"{name} {kind.column}" for name, kind in wanted) + ", absent STRING"

    flow = Flow("passing")
    # An example may repeat an earlier schema, which would not be the latest version again.
    subject = f"in-{next(_NUMBERS)}"
    stream = flow.stream("in", columns, format=Avro(registry=Registry(served.url), subject=subject))
    stream.to("json")
    stream.to("avro", format=Avro(registry=Registry(served.url), subject=f"{subject}-out"))
    id_ = served.add(subject, schema)
    made = feed(MemoryFlow(spark, flow), [framed(id_, schema, row) for row in rows])

    assert "dead-letters" not in made, made["dead-letters"]
    for row, as_json, record in zip(rows, made["json"], made["avro"], strict=True):
        expected = {name: shown(kind, row[name]) for name, kind in wanted} | {"absent": None}
        assert same(json.loads(as_json, parse_float=float), _floats(expected))
        assert same(as_row(unframed(served, record)), _floats(expected))


def _floats(value: Any) -> Any:
    """Return a value with decimals as a reader of JSON has them."""
    match value:
        case dict():
            return {name: _floats(part) for name, part in value.items()}
        case list():
            return [_floats(part) for part in value]
        case bool() | int() | float() | str() | None:
            return value
    return float(value)


CORRUPTIBLE = record_of(
    [
        {"name": "unwanted", "type": {"type": "array", "items": "string"}},
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "skipped", "type": ["null", "long", {"type": "map", "values": "double"}]},
        {"name": "inner", "type": ["null", record_of([{"name": "x", "type": "int"}], "Inner")]},
    ],
    "Corruptible",
)
# A reader passes over the text of fields that it does not want.
WANTED = record_of(
    [part for part in CORRUPTIBLE["fields"] if part["name"] not in ("unwanted", "skipped")],
    "Corruptible",
)
CORRUPTIBLE_COLUMNS = (
    "id BIGINT, name STRING, price DOUBLE, paid BOOLEAN, state STRING, hash BINARY,"
    " tags ARRAY<STRING>, counts MAP<STRING, INT>, note STRING, inner STRUCT<x: INT>"
)
VALUE = {
    "unwanted": ["a", "bc"],
    "id": 123456789,
    "name": "Grüße",
    "price": 12.5,
    "paid": True,
    "state": "OLD",
    "hash": b"\x01\x02\x03\x04",
    "tags": ["x", "yz"],
    "counts": {"a": 1, "b": -300},
    "note": "n",
    "skipped": {"d": 1.0},
    "inner": {"x": 7},
}


@pytest.fixture(scope="module")
def corruptible(spark: SparkSession) -> MemoryFlow:
    """Give a flow that reads records of all kinds of parts."""
    flow = Flow("corrupted")
    flow.stream("in", CORRUPTIBLE_COLUMNS, format=Avro(schema=json.dumps(CORRUPTIBLE))).to("out")
    return MemoryFlow(spark, flow)


@settings(max_examples=100)
@given(data=st.data())
def test_a_corrupted_record_is_a_dead_letter_or_what_fastavro_reads(
    corruptible: MemoryFlow, data: st.DataObject
) -> None:
    whole = bare(CORRUPTIBLE, VALUE)
    records = [data.draw(_corrupted(whole)) for _ in range(30)]
    made = feed(corruptible, records)
    letters = {json.loads(letter)["offset"]: json.loads(letter) for letter in made["dead-letters"]}
    rows = iter(made["out"])
    for place, record in enumerate(records):
        if place in letters:
            assert letters[place]["code"] in ("BAD_AVRO", "NOT_UTF8", "NULL_FIELD")
            continue
        expected = read_bare(CORRUPTIBLE, record, WANTED)
        row = json.loads(next(rows))
        for name in ("id", "name", "paid", "state", "tags", "counts", "note", "inner"):
            assert row[name] == expected[name]
        price = float(row["price"])
        assert price == expected["price"] or (math.isnan(price) and math.isnan(expected["price"]))
    assert next(rows, None) is None


@st.composite
def _corrupted(draw: st.DrawFn, whole: bytes) -> bytes:
    place = draw(st.integers(0, len(whole) - 1))
    match draw(st.sampled_from(["cut", "flip", "insert", "delete", "append", "none"])):
        case "cut":
            return whole[:place]
        case "flip":
            return whole[:place] + bytes([draw(st.integers(0, 255))]) + whole[place + 1 :]
        case "insert":
            return whole[:place] + draw(st.binary(min_size=1, max_size=12)) + whole[place:]
        case "delete":
            return whole[:place] + whole[place + draw(st.integers(1, 5)) :]
        case "append":
            return whole + draw(st.binary(min_size=1, max_size=5))
        case _:
            return whole


def test_every_truncation_is_a_dead_letter(corruptible: MemoryFlow) -> None:
    whole = bare(CORRUPTIBLE, VALUE)
    made = feed(corruptible, [whole[:size] for size in range(len(whole))])
    assert len(made["dead-letters"]) == len(whole)
    assert {json.loads(letter)["code"] for letter in made["dead-letters"]} == {"BAD_AVRO"}
    assert "out" not in made


@pytest.mark.parametrize("items", ["null", record_of([], "Empty")])
def test_a_few_bytes_do_not_stand_for_any_number_of_elements(
    spark: SparkSession, items: Any
) -> None:
    schema = record_of(
        [{"name": "id", "type": "long"}, {"name": "a", "type": {"type": "array", "items": items}}]
    )
    flow = Flow("endless")
    flow.stream("in", "id BIGINT", format=Avro(schema=json.dumps(schema))).to("out")
    memory = MemoryFlow(spark, flow)
    huge = bare(schema, {"id": 1, "a": []})[:-1] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"
    least = huge[:-11] + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"
    made = feed(memory, [huge, least])
    assert [json.loads(letter)["code"] for letter in made["dead-letters"]] == ["BAD_AVRO"] * 2


def test_a_recursive_field_is_passed_over_and_its_depth_is_bounded(spark: SparkSession) -> None:
    node = record_of(
        [{"name": "next", "type": ["null", "Node"]}, {"name": "n", "type": "int"}], "Node"
    )
    schema = record_of([{"name": "list", "type": node}, {"name": "id", "type": "long"}])
    flow = Flow("recursive")
    flow.stream("in", "id BIGINT", format=Avro(schema=json.dumps(schema))).to("out")
    short: dict[str, Any] = {"next": {"next": None, "n": 1}, "n": 2}
    deep = b"\x02" * 100_000 + b"\x00" + b"\x02" * 100_001 + b"\x0e"
    made = feed(MemoryFlow(spark, flow), [bare(schema, {"list": short, "id": 7}), deep])
    assert [json.loads(row) for row in made["out"]] == [{"id": 7}]
    assert json.loads(made["dead-letters"][0])["code"] == "BAD_AVRO"


def test_a_plain_record_has_the_schema_of_its_columns(spark: SparkSession) -> None:
    columns = "id BIGINT NOT NULL, name STRING, tags ARRAY<STRING>, at STRUCT<x: INT NOT NULL>"
    flow = Flow("plain")
    stream = flow.stream("in", columns, format="avro")
    stream.to("out", format="avro")
    stream.to("json")
    tags = {"type": "array", "items": ["null", "string"]}
    at = record_of([{"name": "x", "type": "int"}], "in_at")
    schema = record_of(
        [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"]},
            {"name": "tags", "type": ["null", tags]},
            {"name": "at", "type": ["null", at]},
        ],
        "in",
    )
    row = {"id": 5, "name": None, "tags": ["a", None], "at": {"x": 3}}
    record = bare(schema, row)
    made = feed(MemoryFlow(spark, flow), [record])
    assert made["out"] == [record]
    assert [json.loads(text) for text in made["json"]] == [row]
