"""The state of process functions as rows: from entries that are given, as state has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from headgate._kernel.bridge import kernel
from headgate._kernel.state import ReadableState

NOW = 1_000_000
LATE = NOW + 1


def value(kind: DataType) -> StructType:
    return StructType().add("value", kind).add("expires", LongType())


def listing() -> StructType:
    return longs("first", "next", "size", "oldest")


def mapping() -> StructType:
    return longs("size", "pages", "oldest")


def longs(*names: str) -> StructType:
    return StructType([StructField(name, LongType()) for name in names])


def page_of_list(kind: DataType) -> StructType:
    return StructType().add("items", ArrayType(kind)).add("expires", ArrayType(LongType()))


def page_of_map(key: DataType, kind: DataType) -> StructType:
    return (
        StructType()
        .add("keys", ArrayType(key))
        .add("values", ArrayType(kind))
        .add("expires", ArrayType(LongType()))
    )


def schema(record: dict[str, DataType], pages: dict[str, DataType]) -> StructType:
    """Return a schema of state; the record gets its last column."""
    record_type = StructType([StructField(*each) for each in record.items()])
    record_type = record_type.add("cleanup", LongType())
    pages_type = StructType([StructField(*each) for each in pages.items()])
    return StructType().add("record", record_type).add("pages", pages_type)


OLD = schema(
    {"last": value(DoubleType()), "recent": listing()},
    {"recent": page_of_list(StructType().add("n", LongType()))},
)
NEW = schema(
    {
        "seen": mapping(),
        "last": value(DoubleType()),
        "recent": listing(),
        "recent_size": value(StringType()),
    },
    {
        "seen": page_of_map(StringType(), LongType()),
        "recent": page_of_list(StructType().add("n", LongType()).add("text", StringType())),
    },
)


class Entries:
    """Entries of state, written by hand."""

    def __init__(self, spark: SparkSession, history: Sequence[StructType]) -> None:
        self._spark = spark
        self._history = history
        self._process = kernel(spark).process
        self._made: list[tuple[bytes, bytes]] = []

    def record(self, key: bytes, *columns: Any) -> None:
        """Add a record of the last schema; the columns are all but `cleanup`."""
        content = self._bytes("record", None, (*columns, None))
        self._made.append((b"\0" + key, content))

    def page(self, key: bytes, name: str, number: int, page: int, *columns: Any) -> None:
        """Add a page of the last schema; the number is that of its list or map in state."""
        place = bytes([number]) + page.to_bytes(8)
        content = self._bytes("pages", name, columns)
        self._made.append((b"\1" + len(key).to_bytes(4) + key + place, content))

    def _bytes(self, part: str, name: str | None, columns: Sequence[Any]) -> bytes:
        def of(each: StructType) -> Any:
            kind: Any = each[part].dataType
            return kind if name is None else kind[name].dataType

        types = self._spark._jvm.java.util.ArrayList()  # type: ignore[union-attr]
        from_json = self._spark._jvm.org.apache.spark.sql.types.DataType.fromJson  # type: ignore[union-attr]
        for each in self._history:
            types.add(from_json(of(each).json()))
        rows = self._spark.createDataFrame([tuple(columns)], of(self._history[-1]))
        row = rows._jdf.queryExecution().executedPlan().executeCollect()[0]
        return bytes(self._process.StateUpgrade(types).write(row))

    def held(self) -> DataFrame:
        types = StructType().add("key", BinaryType()).add("value", BinaryType())
        return self._spark.createDataFrame(
            [(bytearray(key), bytearray(content)) for key, content in self._made], types
        )


def form(spark: SparkSession, key: StructType, *history: StructType) -> ReadableState:
    found = kernel(spark).state.ReadableState.process(key.json(), [each.json() for each in history])
    return ReadableState(spark, found)


USER = StructType().add("user", LongType(), False)


def rows(spark: SparkSession, entries: Entries, *history: StructType) -> list[dict[str, Any]]:
    found = form(spark, USER, *history).rows(entries.held(), now_ms=NOW)
    return sorted((row.asDict(recursive=True) for row in found.collect()), key=lambda r: r["user"])


def test_a_record_without_lists_is_a_row_of_its_values(spark: SparkSession) -> None:
    only = schema({"last": value(DoubleType()), "name": value(StringType())}, {})
    entries = Entries(spark, [only])
    entries.record(b"42", (1.5, None), ("x", LATE))
    entries.record(b"43", (2.5, NOW), None)
    assert rows(spark, entries, only) == [
        {"user": 42, "last": 1.5, "name": "x"},
        {"user": 43, "last": None, "name": None},
    ]


def test_lists_and_maps_are_read_from_their_pages(spark: SparkSession) -> None:
    entries = Entries(spark, [NEW])
    entries.record(b"1", (3, 2, None), (1.5, None), (4, 6, 3, None), ("mine", None))
    entries.page(b"1", "recent", 1, 5, [(3, "c")], None)
    entries.page(b"1", "recent", 1, 4, [(1, "a"), (2, "b")], None)
    # A page that the record does not name, and one of a key with the same beginning.
    entries.page(b"1", "recent", 1, 3, [(0, "gone")], None)
    entries.page(b"11", "recent", 1, 4, [(0, "other")], None)
    entries.page(b"1", "seen", 0, 0, ["x", "y"], [7, 8], [LATE, NOW])
    entries.page(b"1", "seen", 0, 1, ["z"], [9], None)
    entries.record(b"11", None, None, None, None)
    assert rows(spark, entries, NEW) == [
        {
            "user": 1,
            "seen": [{"key": "x", "value": 7}, {"key": "z", "value": 9}],
            "seen_size": 3,
            "last": 1.5,
            "recent": [
                {"n": 1, "text": "a"},
                {"n": 2, "text": "b"},
                {"n": 3, "text": "c"},
            ],
            # A declared value has that name: the size gets another.
            "recent_size_": 3,
            "recent_size": "mine",
        },
        {
            "user": 11,
            "seen": [],
            "seen_size": 0,
            "last": None,
            "recent": [],
            "recent_size_": 0,
            "recent_size": None,
        },
    ]


def test_records_and_pages_of_an_older_schema_are_read(spark: SparkSession) -> None:
    entries = Entries(spark, [OLD])
    entries.record(b"1", (1.5, None), (0, 1, 2, None))
    entries.page(b"1", "recent", 0, 0, [(1,), (2,)], None)
    (row,) = rows(spark, entries, OLD, NEW)
    assert row["last"] == 1.5
    assert row["recent"] == [{"n": 1, "text": None}, {"n": 2, "text": None}]
    assert (row["seen"], row["seen_size"]) == ([], 0)


def test_a_row_shows_the_first_thousand_entries_and_the_number_of_all(spark: SparkSession) -> None:
    only = schema({"recent": listing()}, {"recent": page_of_list(LongType())})
    entries = Entries(spark, [only])
    # The first page has one item, so that the pages are not equally full.
    entries.record(b"1", (0, 41, 20_001, None))
    entries.page(b"1", "recent", 0, 0, [0], None)
    for page in range(1, 41):
        entries.page(b"1", "recent", 0, page, list(range(page * 500, page * 500 + 500)), None)
    (row,) = rows(spark, entries, only)
    assert row["recent"] == [0, *range(500, 1499)]
    assert row["recent_size"] == 20_001


def test_a_key_is_typed_as_that_of_other_operators(spark: SparkSession) -> None:
    only = form(spark, USER, OLD)
    assert only.key("42") == only.key('{"user": 42}') == b"42"
    with pytest.raises(ValueError, match="token"):
        only.key("x")


def test_several_key_columns_stand_before_the_values(spark: SparkSession) -> None:
    key = StructType().add("user", LongType(), False).add("shop", StringType(), False)
    only = schema({"last": value(DoubleType())}, {})
    entries = Entries(spark, [only])
    entries.record(json.dumps([7, "a"], separators=(",", ":")).encode(), (0.5, None))
    (row,) = form(spark, key, only).rows(entries.held(), now_ms=NOW).collect()
    assert row.asDict() == {"user": 7, "shop": "a", "last": 0.5}
