"""What a record says beside its value is a column of the stream, where one was asked for."""

from __future__ import annotations

from typing import Any

from memory_flow import MemoryFlow
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord

RECORD = MemoryRecord(
    "in",
    b'{"a": 1}',
    partition=3,
    offset=2**40,
    timestamp=1794766574613,
    topic="orders-eu",
    key=b"k\xff",
    headers=(("first", b"1"), ("none", None), ("twice", b"x"), ("twice", b"\xc3"), ("", b"")),
)
META = {
    "topic": "orders-eu",
    "partition": 3,
    "offset": 2**40,
    "timestamp": "2026-11-15T18:16:14.613Z",
    "key": "k\ufffd",
    "headers": {"first": "1", "none": None, "twice": "\ufffd", "": ""},
    "event_time": None,
}


def _out(spark: SparkSession, flow: Flow, record: MemoryRecord) -> Any:
    [row] = MemoryFlow(spark, flow).batch([record])["out"]
    return row


def test_a_record_tells_its_place_its_key_and_its_headers(spark: SparkSession) -> None:
    flow = Flow("placed")
    flow.stream("in", "a BIGINT", meta="of").to("out")
    assert _out(spark, flow, RECORD) == {"a": 1, "of": META}


def test_what_a_record_does_not_have_is_null_or_empty(spark: SparkSession) -> None:
    flow = Flow("bare")
    flow.stream("in", "a BIGINT", meta="of").to("out")
    made = _out(spark, flow, MemoryRecord("in", b'{"a": 1}'))["of"]
    assert (made["topic"], made["key"], made["headers"]) == ("in", None, {})


def test_sql_reads_its_fields(spark: SparkSession) -> None:
    flow = Flow("computed")
    rows = flow.stream("in", "a BIGINT", meta="of").where("of.partition = 3")
    rows.select("a", "of.headers['first'] AS h", "unix_millis(of.timestamp) AS ms").to("out")
    assert _out(spark, flow, RECORD) == {"a": 1, "h": "1", "ms": 1794766574613}


def test_it_passes_operators_on_both_sides(spark: SparkSession) -> None:
    flow = Flow("through")
    table = flow.table("t", "id BIGINT NOT NULL, v BIGINT", key="id")
    enriched = flow.stream("in", "a BIGINT", meta="of").enrich("e", table, on="a", into="row")
    enriched.matched.to("out")
    enriched.missing.select("a", "of.offset AS at").to("missing")
    memory = MemoryFlow(spark, flow)
    memory.feed("t", {"id": 1, "v": 2})
    other = MemoryRecord("in", b'{"a": 9}', offset=7)
    made = memory.batch([RECORD, other])
    assert made["out"] == [{"a": 1, "of": META, "row": {"id": 1, "v": 2}}]
    assert made["missing"] == [{"a": 9, "at": 7}]


def test_a_dead_letter_names_the_topic_that_the_record_names(spark: SparkSession) -> None:
    flow = Flow("letters")
    flow.stream("in", "a STRING", meta="of").to("out")
    [letter] = MemoryFlow(spark, flow).batch([RECORD])["dead-letters"]
    assert (letter["topic"], letter["partition"]) == ("orders-eu", 3)
