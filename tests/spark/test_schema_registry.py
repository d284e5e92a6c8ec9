"""A schema registry: what is asked of it and when, and what becomes of what it does not know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession
from schema_registry import SchemaRegistry
from test_avro import bare, feed, framed, record_of, unframed

from headgate import Flow, HeadgateError
from headgate.formats import Avro, Registry

V1 = record_of([{"name": "id", "type": "long"}, {"name": "price", "type": "int"}])
V2 = record_of(
    [
        {"name": "price", "type": ["null", "double"], "default": None},
        {"name": "note", "type": "string", "default": ""},
        {"name": "id", "type": "long"},
    ]
)
COLUMNS = "id BIGINT NOT NULL, price DOUBLE"


@pytest.fixture
def served() -> Iterator[SchemaRegistry]:
    """Give a registry of the test's own."""
    with SchemaRegistry().serving() as registry:
        yield registry


def reading(registry: Any, columns: str = COLUMNS, **options: Any) -> Flow:
    """Return a flow that reads Avro and writes JSON."""
    flow = Flow("reading")
    flow.stream("in", columns, format=Avro(registry=registry, **options)).to("out")
    return flow


def writing(registry: Any, columns: str = COLUMNS, **options: Any) -> Flow:
    """Return a flow that reads JSON and writes Avro."""
    flow = Flow("writing")
    flow.stream("in", columns).to("out", format=Avro(registry=registry, **options))
    return flow


def rows(made: dict[str, list[bytes]], name: str = "out") -> list[Any]:
    """Return rows or dead letters."""
    return [json.loads(row) for row in made.get(name, [])]


def letters(made: dict[str, list[bytes]]) -> list[str]:
    """Return the codes of the dead letters."""
    return [letter["code"] for letter in rows(made, "dead-letters")]


def test_a_new_version_in_mid_stream_is_fetched_once(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    first = served.add("in-value", V1)
    memory = MemoryFlow(spark, reading(served.url))
    made = feed(memory, [framed(first, V1, {"id": 1, "price": 2})])
    second = served.add("in-value", V2)
    later = [{"id": 2, "price": 0.5, "note": "x"}, {"id": 3, "price": None, "note": ""}]
    records = [framed(second, V2, row) for row in later]
    assert rows(made) == [{"id": 1, "price": 2.0}]
    assert rows(feed(memory, [*records, framed(first, V1, {"id": 4, "price": 5})])) == [
        {"id": 2, "price": 0.5},
        {"id": 3, "price": None},
        {"id": 4, "price": 5.0},
    ]
    asked = [path for path in served.requests if path.startswith("/schemas/ids/")]
    assert asked == [f"/schemas/ids/{first}", f"/schemas/ids/{second}"]


def test_what_is_not_a_record_of_the_registry_is_a_dead_letter(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    good = served.add("in-value", V1)
    other = served.add("other", record_of([{"name": "id", "type": "string"}], "other"))
    enum = served.add("enum", {"type": "enum", "name": "e", "symbols": ["A"]})
    protobuf = served.add("proto", "syntax = 'proto3';", schemaType="PROTOBUF")
    broken = served.add("broken", '{"type": "nonsense"}')
    body = bare(V1, {"id": 1, "price": 2})

    def with_id(id_: int) -> bytes:
        return b"\0" + id_.to_bytes(4, "big") + body

    records = [b"", b"\0\0\0", b'{"id": 1}', *map(with_id, [999, other, enum, protobuf, broken])]
    made = feed(MemoryFlow(spark, reading(served.url)), [*records, with_id(good)])
    assert letters(made) == [
        *["BAD_AVRO"] * 3,
        "SCHEMA_UNKNOWN",
        *["SCHEMA_INCOMPATIBLE"] * 4,
    ]
    assert rows(made) == [{"id": 1, "price": 2.0}]
    reasons = [letter["reason"] for letter in rows(made, "dead-letters")]
    assert "its first byte is 123" in reasons[2]
    assert "has no schema 999" in reasons[3]
    assert "field 'id' is written as string, and the column is BIGINT" in reasons[4]
    assert "PROTOBUF" in reasons[6]


def test_a_schema_that_breaks_rules_of_names_and_defaults_reads_records(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    odd = {**V1, "name": "order-value", "namespace": "shop-1"}
    odd["fields"] = [*V1["fields"], {"name": "note", "type": "string", "default": None}]
    id_ = served.add("in-value", odd)
    plain = {**odd, "name": "o", "namespace": "n", "fields": [*odd["fields"]]}
    plain["fields"][2] = {"name": "note", "type": "string"}
    made = feed(
        MemoryFlow(spark, reading(served.url)),
        [framed(id_, plain, {"id": 1, "price": 2, "note": "x"})],
    )
    assert rows(made) == [{"id": 1, "price": 2.0}]


def test_a_null_without_place_is_a_dead_letter_and_the_others_are_rows(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    memory = MemoryFlow(spark, reading(served.url, "id BIGINT NOT NULL, price DOUBLE NOT NULL"))
    id_ = served.add("in-value", V2)
    values = [{"id": 1, "price": None, "note": ""}, {"id": 2, "price": 1.0, "note": ""}]
    made = feed(memory, [framed(id_, V2, value) for value in values])
    assert letters(made) == ["NULL_FIELD"]
    assert rows(made) == [{"id": 2, "price": 1.0}]


def test_columns_that_do_not_fit_the_latest_version_are_refused_at_the_start(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    served.add("in-value", V1)
    served.add("in-value", V2)
    for columns, part, hint in [
        ("id BIGINT, price DOUBLE NOT NULL", "field 'price' may be null", "| None"),
        ("id STRING", "field 'id' is written as long, and the column is STRING", "BIGINT"),
        ("id BIGINT, paid BOOLEAN NOT NULL", "field 'paid' is not written", "default"),
    ]:
        with pytest.raises(HeadgateError) as raised:
            MemoryFlow(spark, reading(served.url, columns))
        assert raised.value.code == "SCHEMA_INCOMPATIBLE"
        assert "version 2 of subject 'in-value'" in raised.value.message
        assert part in raised.value.message
        assert hint in raised.value.hint


def test_aliases_and_defaults_of_a_readers_schema_count(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    reader = record_of(
        [
            {"name": "number", "type": "long", "aliases": ["nr", "id"]},
            {"name": "currency", "type": "string", "default": "EUR"},
        ]
    )
    id_ = served.add("in-value", V1)
    flow = reading(
        served.url, "number BIGINT NOT NULL, currency STRING NOT NULL", schema=json.dumps(reader)
    )
    made = feed(MemoryFlow(spark, flow), [framed(id_, V1, {"id": 5, "price": 1})])
    assert rows(made) == [{"number": 5, "currency": "EUR"}]


def test_schemas_that_refer_to_others_are_put_together(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    money = record_of([{"name": "cents", "type": "long"}], "Money")
    served.add("money", money)
    order = record_of([{"name": "price", "type": "Money"}], "Order")
    references = [{"name": "Money", "subject": "money", "version": 1}]
    id_ = served.add("in-value", order, references=references)
    whole = record_of([{"name": "price", "type": money}], "Order")
    memory = MemoryFlow(spark, reading(served.url, "price STRUCT<cents: BIGINT>"))
    made = feed(memory, [framed(id_, whole, {"price": {"cents": 99}})])
    assert rows(made) == [{"price": {"cents": 99}}]


def test_an_output_registers_its_schema_once_and_keeps_the_id(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    flow = writing(served.url, record="com.acme.Order")
    first = feed(MemoryFlow(spark, flow), [b'{"id": 1, "price": 0.5}'])["out"]
    again = feed(MemoryFlow(spark, flow), [b'{"id": 1, "price": 0.5}'])["out"]
    assert first == again
    assert unframed(served, first[0]) == {"id": 1, "price": 0.5}
    assert len(served.subjects["out-value"]) == 1
    assert served.latest("out-value") == {
        "type": "record",
        "name": "Order",
        "namespace": "com.acme",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "price", "type": ["null", "double"], "default": None},
        ],
    }


def test_a_refused_schema_names_subject_and_compatibility(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    served.add("out-value", record_of([{"name": "id", "type": "string"}]))
    with pytest.raises(HeadgateError) as raised:
        MemoryFlow(spark, writing(served.url))
    assert raised.value.code == "SCHEMA_REFUSED"
    for part in ("output 'out'", "'out-value' (BACKWARD)", "version is 1", "TYPE_MISMATCH: id"):
        assert part in raised.value.message
    assert not raised.value.retryable


def test_without_registering_rows_are_written_by_the_latest_version(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    with pytest.raises(HeadgateError, match="has no version") as raised:
        MemoryFlow(spark, writing(served.url, register=False))
    assert raised.value.code == "SCHEMA_INCOMPATIBLE"
    id_ = served.add("out-value", V2)
    memory = MemoryFlow(spark, writing(served.url, register=False))
    (record,) = feed(memory, [b'{"id": 1, "price": 0.5}'])["out"]
    assert record == framed(id_, V2, {"id": 1, "price": 0.5, "note": ""})
    assert served.subjects["out-value"] == [id_]
    with pytest.raises(HeadgateError, match="'extra' is not in the schema") as raised:
        MemoryFlow(spark, writing(served.url, f"{COLUMNS}, extra INT", register=False))
    assert raised.value.code == "SCHEMA_INCOMPATIBLE"


def test_rows_that_a_given_schema_has_no_place_for_are_dead_letters(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    state = {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}
    schema = record_of(
        [
            {"name": "state", "type": state},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ]
    )
    flow = writing(served.url, "state STRING, at TIMESTAMP", schema=json.dumps(schema))
    records = [
        b'{"state": "OLD", "at": "2026-11-15T10:00:00.125Z"}',
        b'{"state": "LOST", "at": "2026-11-15T10:00:00Z"}',
        b'{"state": "NEW", "at": "2026-11-15T10:00:00.000001Z"}',
        b'{"state": null, "at": "2026-11-15T10:00:00Z"}',
    ]
    made = feed(MemoryFlow(spark, flow), records)
    assert letters(made) == ["WRONG_TYPE", "WRONG_TYPE", "NULL_FIELD"]
    (row,) = made["out"]
    value = unframed(served, row)
    assert (value["state"], value["at"].isoformat()) == ("OLD", "2026-11-15T10:00:00.125000+00:00")


@pytest.mark.parametrize(
    ("columns", "part"),
    [("`a-b` INT", "`a-b`"), ("a STRUCT<`1`: INT>", "rename")],
)
def test_names_that_avro_does_not_take_are_refused_with_a_hint(
    spark: SparkSession, columns: str, part: str
) -> None:
    flow = Flow("named")
    flow.stream("in", columns).to("out", format="avro")
    with pytest.raises(HeadgateError) as raised:
        MemoryFlow(spark, flow)
    assert raised.value.code == "BAD_OUTPUT"
    assert part in raised.value.hint


def test_a_login_is_resolved_where_it_is_needed_and_never_shown(
    spark: SparkSession, served: SchemaRegistry, tmp_path: Path
) -> None:
    served.requires("shop", "s3cret-word")
    file = tmp_path / "password"
    file.write_text("s3cret-word\n")
    registry = Registry(served.url, user="shop", password=f"${{file:{file}}}")
    feed(MemoryFlow(spark, writing(registry)), [b'{"id": 1}'])
    assert served.subjects["out-value"]
    file.write_text("wrong-word\n")
    wrong = Registry(f"{served.url}/", user="shop", password=f"${{file:{file}}}")
    with pytest.raises(HeadgateError) as raised:
        MemoryFlow(spark, writing(wrong))
    assert raised.value.code == "REGISTRY_REFUSED"
    assert "answered 401" in raised.value.message
    assert "word" not in raised.value.message


def test_a_registry_that_stumbles_is_asked_again(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    id_ = served.add("in-value", V1)
    memory = MemoryFlow(spark, reading(served.url))
    served.answers += [503, 500, 429]
    made = feed(memory, [framed(id_, V1, {"id": 1, "price": 2})])
    assert rows(made) == [{"id": 1, "price": 2.0}]
    assert served.requests.count(f"/schemas/ids/{id_}") == 4


def test_a_proxy_that_answers_in_its_place_makes_no_dead_letter(
    spark: SparkSession, served: SchemaRegistry
) -> None:
    id_ = served.add("in-value", V1)
    memory = MemoryFlow(spark, reading(served.url))
    served.answers += [404]
    with pytest.raises(Exception, match="REGISTRY_REFUSED: cannot get schema"):
        feed(memory, [framed(id_, V1, {"id": 1, "price": 2})])
    made = feed(memory, [framed(id_, V1, {"id": 1, "price": 2})])
    assert rows(made) == [{"id": 1, "price": 2.0}]


def test_a_registry_that_is_down_fails_the_attempt_and_a_later_one_succeeds(
    spark: SparkSession,
) -> None:
    registry = SchemaRegistry()
    with registry.serving():
        id_ = registry.add("in-value", V1)
        memory = MemoryFlow(spark, reading(registry.url))
    record = framed(id_, V1, {"id": 1, "price": 2})
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.setProperty("headgate.registry.patience", "2")
    with pytest.raises(Exception, match=f"REGISTRY_UNREACHABLE: cannot get schema {id_}: the"):
        feed(memory, [record])
    with pytest.raises(HeadgateError, match="in-value") as raised:
        MemoryFlow(spark, reading(registry.url))
    assert raised.value.code == "REGISTRY_UNREACHABLE"
    assert raised.value.retryable
    with registry.serving():
        assert rows(feed(memory, [record])) == [{"id": 1, "price": 2.0}]
    jvm.java.lang.System.clearProperty("headgate.registry.patience")
