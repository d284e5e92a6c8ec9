"""Tables of Debezium's changes hold what their database did: against a model in plain Python."""

from __future__ import annotations

import base64
import json
import random
from decimal import Decimal
from typing import Any

import debezium
import pytest
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate._kernel.state import PortableTable
from headgate.engine.plan.spark_types import to_spark_json
from headgate.formats import Debezium, Upsert

# How many random topics there are of each connector.
KINDS = {"postgresql": 40, "mysql": 40, "sqlserver": 10, "oracle": 10}
USER = "id BIGINT NOT NULL, name STRING NOT NULL"


def users(schema: str = USER, *, key: str = "id", form: Any = "debezium") -> Flow:
    flow = Flow("users")
    table = flow.table("users", schema, key=key, format=form)
    stream = flow.stream("asks", f"{key} {'STRING' if key != 'id' else 'BIGINT'}")
    asked = stream.enrich("asked", table, on=key, into="user")
    asked.matched.select("user").to("known")
    asked.missing.to("unknown")
    return flow


def ask(memory: MemoryFlow, keys: list[Any], *, column: str = "id") -> dict[Any, Any]:
    """Return the rows that the table has of some keys."""
    out = memory.batch(
        MemoryRecord("asks", json.dumps({column: key}).encode(), offset=place)
        for place, key in enumerate(keys)
    )
    assert not out["dead-letters"]
    return {row["user"][column]: row["user"] for row in out["known"]}


def as_memory(record: debezium.Record) -> MemoryRecord:
    return MemoryRecord(
        "users",
        record.value,
        sequence=record.offset,
        lane=record.partition,
        timestamp=record.timestamp,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_the_newest_of_what_was_read_after_every_batch(
    spark: SparkSession, kind: str
) -> None:
    memory = MemoryFlow(spark, users())
    for seed in range(KINDS[kind]):
        rng = random.Random(f"{kind}-{seed}")
        keys = [seed * 100 + each for each in range(6)]
        topic, database = debezium.run(kind, rng, keys)
        left = [list(part) for part in topic.records]
        read: list[debezium.Record] = []
        while any(left):
            batch = []
            for _ in range(rng.randint(1, 12)):
                part = rng.choice([part for part in left if part] or [[]])
                if part:
                    batch.append(part.pop(0))
            read += batch
            out = memory.batch(map(as_memory, batch), seed=rng.randint(0, 2**31))
            assert not out, (kind, seed, out)
            assert ask(memory, keys) == debezium.newest(read), (kind, seed, len(read))
        assert ask(memory, keys) == database.rows, (kind, seed)


def test_the_simulated_connector_sends_changes_again_and_takes_snapshots() -> None:
    records = [
        record
        for seed in range(40)
        for part in debezium.run("postgresql", random.Random(f"postgresql-{seed}"), [1, 2, 3])[
            0
        ].records
        for record in part
    ]
    sent = [(r.event.key, *r.event.rank()) for r in records if r.value is not None]
    assert len(set(sent)) < len(sent)
    assert sum(record.value is None for record in records) > 50
    assert {record.event.op for record in records} == {"c", "u", "d", "r"}


def change(op: str, *, before: Any = None, after: Any = None, **source: Any) -> dict[str, Any]:
    source = {"connector": "postgresql", "name": "pg", "db": "shop", **source}
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}


def feed(memory: MemoryFlow, *records: Any, at: int = 0, key: Any = None) -> Any:
    """Run one batch of records; None is a tombstone of the key."""
    return memory.batch(
        MemoryRecord(
            "users",
            None
            if value is None
            else value
            if isinstance(value, bytes)
            else json.dumps(value).encode(),
            sequence=at + place,
            offset=at + place,
            timestamp=at + place,
            key=None
            if key is None
            else key
            if isinstance(key, bytes)
            else json.dumps(key).encode(),
        )
        for place, value in enumerate(records)
    )


def test_a_tombstone_ends_a_row_whose_deletion_was_compacted_away(spark: SparkSession) -> None:
    keys: list[Any] = [{"id": 1}, {"schema": {"type": "struct"}, "payload": {"id": 1}}, b"1"]
    keys.append({"schema": {"type": "int64"}, "payload": 1})
    for key in keys:
        memory = MemoryFlow(spark, users())
        row = {"id": 1, "name": "a"}
        feed(memory, change("c", after=row, lsn=10, sequence='["5","10"]'))
        assert ask(memory, [1]) == {1: row}
        assert not feed(memory, None, at=5, key=key)
        assert ask(memory, [1]) == {}
        # The connector sends again what is older: the row does not come back.
        feed(memory, change("u", after=row, lsn=8, sequence='["3","8"]'), at=6)
        assert ask(memory, [1]) == {}
        feed(memory, change("c", after=row, lsn=20, sequence='["15","20"]'), at=7)
        assert ask(memory, [1]) == {1: row}


def test_a_deletion_without_a_row_goes_by_the_message_key(spark: SparkSession) -> None:
    memory = MemoryFlow(spark, users())
    feed(memory, change("c", after={"id": 7, "name": "a"}, lsn=10))
    assert not feed(memory, change("d", lsn=11), at=1, key={"id": 7})
    assert ask(memory, [7]) == {}
    (letter,) = feed(memory, change("d", lsn=12), at=2)["dead-letters"]
    assert letter["code"] == "NO_KEY"


def test_a_changed_key_ends_the_row_of_the_old_one(spark: SparkSession) -> None:
    memory = MemoryFlow(spark, users("id BIGINT NOT NULL, name STRING NOT NULL", key="name"))
    old, new = {"id": 1, "name": "a"}, {"id": 1, "name": "b"}
    feed(memory, change("c", after=old, lsn=10))
    feed(memory, change("u", before=old, after=new, lsn=11), at=1)
    assert ask(memory, ["a", "b"], column="name") == {"b": new}
    # The same again, and what is older, change nothing.
    feed(memory, change("c", after=old, lsn=10), change("u", before=old, after=new, lsn=11), at=2)
    assert ask(memory, ["a", "b"], column="name") == {"b": new}


def test_positions_of_other_databases_are_not_compared(spark: SparkSession) -> None:
    memory = MemoryFlow(spark, users())
    feed(memory, change("c", after={"id": 1, "name": "a"}, lsn=1000, sequence='["900","1000"]'))
    feed(
        memory,
        change("u", after={"id": 1, "name": "b"}, lsn=5, sequence='["4","5"]', name="other"),
        at=1,
    )
    assert ask(memory, [1])[1]["name"] == "b"


def test_a_generic_source_is_ordered_by_its_time(spark: SparkSession) -> None:
    memory = MemoryFlow(spark, users())
    for place, (time, name) in enumerate([(10, "a"), (30, "c"), (20, "b")]):
        feed(
            memory,
            change("u", after={"id": 1, "name": name}, connector="vitess", ts_ms=time),
            at=place,
        )
    assert ask(memory, [1])[1]["name"] == "c"


def test_another_server_of_mysql_begins_a_log_of_its_own(spark: SparkSession) -> None:
    memory = MemoryFlow(spark, users())
    at = {"connector": "mysql", "row": 0}
    feed(
        memory,
        change("u", after={"id": 1, "name": "a"}, file="bin.000009", pos=4, server_id=1, **at),
    )
    feed(
        memory,
        change("u", after={"id": 1, "name": "b"}, file="bin.000002", pos=4, server_id=2, **at),
        at=1,
    )
    assert ask(memory, [1])[1]["name"] == "b"
    feed(
        memory,
        change("u", after={"id": 1, "name": "c"}, file="bin.000001", pos=9, server_id=2, **at),
        at=2,
    )
    assert ask(memory, [1])[1]["name"] == "b"


GOOD = {"id": 1, "name": "a"}
BAD = [
    (b"{", "BAD_JSON"),
    (b"\xff", "NOT_UTF8"),
    (b'["c"]', "NOT_AN_OBJECT"),
    (json.dumps(change("c", after=GOOD, lsn=1)).encode() + b"{}", "BAD_JSON"),
    (json.dumps(change("c", after=GOOD, lsn=1)).encode()[:-20], "BAD_JSON"),
    (GOOD, "BAD_CHANGE"),
    ({"payload": 5}, "WRONG_TYPE"),
    ({"schema": 1, "payload": change("c", after=GOOD)}, "WRONG_TYPE"),
    (change("x", after=GOOD), "BAD_CHANGE"),
    ({**change("c", after=GOOD), "op": 1}, "WRONG_TYPE"),
    ({**change("c", after=GOOD), "op": None}, "BAD_CHANGE"),
    ({**change("c", after=GOOD), "source": 3}, "WRONG_TYPE"),
    (change("c"), "BAD_CHANGE"),
    (change("u", before=GOOD), "BAD_CHANGE"),
    (change("c", after=5), "WRONG_TYPE"),
    (change("c", after="{"), "BAD_JSON"),
    (change("c", after={"id": "1", "name": "a"}), "WRONG_TYPE"),
    (change("c", after={"id": 1, "name": None}), "NULL_FIELD"),
    (change("c", after={"id": 1}), "MISSING_FIELD"),
    (change("c", after={"id": None, "name": "a"}), "NULL_FIELD"),
    (change("d", before={"id": "x"}), "WRONG_TYPE"),
    (change("d", before={"name": "a"}), "NO_KEY"),
    (change("t"), "TRUNCATED"),
    (change("m"), "BAD_CHANGE"),
    (change("c", after=GOOD, lsn="later"), "WRONG_TYPE"),
    (change("c", after=GOOD, lsn=-1), "WRONG_TYPE"),
    (change("c", after=GOOD, lsn=1, sequence="[1"), "WRONG_TYPE"),
    (change("c", after=GOOD, connector="mysql", file="bin", pos=1), "WRONG_TYPE"),
    (change("c", after=GOOD, connector="sqlserver", commit_lsn="zz"), "WRONG_TYPE"),
    (change("c", after=GOOD, connector="oracle", scn="1,2"), "WRONG_TYPE"),
    (change("c", after={"id": 1, "name": "__debezium_unavailable_value"}), "VALUE_UNAVAILABLE"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_corrupted_envelope_is_a_dead_letter(spark: SparkSession, number: int) -> None:
    record, reason = BAD[number]
    memory = _shared(spark)
    out = feed(memory, record)
    assert [letter["code"] for letter in out["dead-letters"]] == [reason], out
    assert out["dead-letters"][0]["reason"]
    assert ask(memory, [1]) == {}


_FLOWS: dict[int, MemoryFlow] = {}


def _shared(spark: SparkSession) -> MemoryFlow:
    return _FLOWS.setdefault(id(spark), MemoryFlow(spark, users()))


def test_a_value_that_was_not_logged_is_no_matter_in_an_undeclared_column(
    spark: SparkSession,
) -> None:
    memory = MemoryFlow(spark, users())
    row = {
        "id": 1,
        "name": "a __debezium_unavailable_value",
        "photo": "__debezium_unavailable_value",
    }
    assert not feed(memory, change("u", after=row, lsn=1))
    assert ask(memory, [1])[1]["name"] == row["name"]


TYPES = "id BIGINT NOT NULL, born DATE, seen TIMESTAMP, price DECIMAL(10,2), tags ARRAY<TIMESTAMP>"
MICROS = 1_700_000_000_123_456
SEEN = "2023-11-14T22:13:20.123456Z"


def packed(number: int) -> str:
    return base64.b64encode(number.to_bytes(8, "big", signed=True)).decode()


def schema_of(**fields: Any) -> dict[str, Any]:
    """Return Connect's schema of an envelope with these types of columns."""
    columns = [{"type": "int64", "optional": False, "field": "id"}]
    columns += [{"field": name, "optional": True, **kind} for name, kind in fields.items()]
    row = {"type": "struct", "fields": columns, "optional": True, "name": "pg.users.Value"}
    return {"type": "struct", "fields": [{**row, "field": "before"}, {**row, "field": "after"}]}


MICRO = {"type": "int64", "name": "io.debezium.time.MicroTimestamp"}
MILLI = {"type": "int64", "name": "io.debezium.time.Timestamp"}
NANO = {"type": "int64", "name": "io.debezium.time.NanoTimestamp"}
ZONED = {"type": "string", "name": "io.debezium.time.ZonedTimestamp"}
DAY = {"type": "int32", "name": "io.debezium.time.Date"}
CONNECT = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}
DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
SCALED = {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}


@pytest.mark.parametrize(
    ("column", "kind", "value", "expected"),
    [
        ("born", DAY, 19675, "2023-11-14"),
        ("born", {"type": "string"}, "2023-11-14", "2023-11-14"),
        ("born", MILLI, 19675 * 86_400_000, "2023-11-14"),
        ("born", MILLI, 19675 * 86_400_000 + 1, None),
        ("seen", MICRO, MICROS, SEEN),
        ("seen", MILLI, MICROS // 1000, "2023-11-14T22:13:20.123Z"),
        ("seen", CONNECT, MICROS // 1000, "2023-11-14T22:13:20.123Z"),
        ("seen", NANO, MICROS * 1000, SEEN),
        ("seen", NANO, MICROS * 1000 + 1, None),
        ("seen", ZONED, "2023-11-14T23:13:20.123456+01:00", SEEN),
        ("seen", DAY, 19675, "2023-11-14T00:00:00Z"),
        ("seen", {"type": "int64"}, MICROS, None),
        ("price", {**DECIMAL, "parameters": {"scale": "2"}}, packed(123456), Decimal("1234.56")),
        ("price", {**DECIMAL, "parameters": {"scale": "1"}}, packed(-5), Decimal("-0.50")),
        ("price", {**DECIMAL, "parameters": {"scale": "3"}}, packed(1001), None),
        ("price", {**DECIMAL, "parameters": {"scale": "0"}}, packed(10**12), None),
        ("price", {**DECIMAL, "parameters": {"scale": "0"}}, "?", None),
        ("price", SCALED, {"scale": 1, "value": packed(15)}, Decimal("1.50")),
        ("price", SCALED, {"scale": 1}, None),
        ("price", {"type": "string"}, "12.3", Decimal("12.30")),
        ("price", {"type": "double"}, 12.3, Decimal("12.30")),
        (
            "tags",
            {"type": "array", "items": MILLI},
            [0, 1],
            ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.001Z"],
        ),
    ],
)
def test_values_have_the_types_that_the_schema_says(
    spark: SparkSession, column: str, kind: Any, value: Any, expected: Any
) -> None:
    memory = _typed(spark)
    record = {
        "schema": schema_of(**{column: kind}),
        "payload": change("c", after={"id": 1, column: value}),
    }
    out = feed(memory, record)
    if expected is None:
        assert [letter["code"] for letter in out["dead-letters"]] == ["WRONG_TYPE"]
        return
    assert not out, out
    row = ask(memory, [1])[1]
    assert (Decimal(str(row[column])) if column == "price" else row[column]) == expected


def _typed(spark: SparkSession) -> MemoryFlow:
    return _FLOWS.setdefault(-id(spark), MemoryFlow(spark, users(TYPES)))


def test_without_a_schema_options_say_what_numbers_mean(spark: SparkSession) -> None:
    row = {"id": 1, "born": 19675, "seen": MICROS // 1000, "price": packed(1234)}
    (letter,) = feed(_typed(spark), change("c", after=row))["dead-letters"]
    assert "Debezium(timestamps=" in letter["reason"]
    memory = MemoryFlow(spark, users(TYPES, form=Debezium(timestamps="ms", decimals="base64")))
    assert not feed(memory, change("c", after=row))
    read = ask(memory, [1])[1]
    assert (read["born"], read["seen"], read["price"]) == (
        "2023-11-14",
        "2023-11-14T22:13:20.123Z",
        12.34,
    )


def test_a_stream_has_the_operation_of_each_change(spark: SparkSession) -> None:
    flow = Flow("reacting")
    flow.stream("users", USER, format=Debezium(op="op"), meta="record").select(
        "id", "name", "op", "record.offset AS place"
    ).to("out")
    memory = MemoryFlow(spark, flow)
    row = {"id": 1, "name": "a", "op": 5}
    out = feed(
        memory,
        change("r", after=row),
        change("u", before=row, after={**row, "name": "b"}),
        change("d", before={**row, "name": "b"}),
        None,
        change("c", after=row),
        change("t"),
        change("d", before={"id": 1}),
        key={"id": 1},
    )
    assert out["out"] == [
        {"id": 1, "name": "a", "op": "r", "place": 0},
        {"id": 1, "name": "b", "op": "u", "place": 1},
        {"id": 1, "name": "b", "op": "d", "place": 2},
        {"id": 1, "name": "a", "op": "c", "place": 4},
    ]
    assert [letter["code"] for letter in out["dead-letters"]] == ["TRUNCATED", "MISSING_FIELD"]


def test_a_broadcast_has_the_newest_rows(spark: SparkSession) -> None:
    flow = Flow("labels")
    rules = flow.broadcast(
        "users", "id BIGINT NOT NULL, when STRING, label STRING", key="id", format="debezium"
    )
    flow.stream("asks", "n BIGINT").label("apply", rules).out.to("out")
    memory = MemoryFlow(spark, flow)
    old = {"id": 1, "when": "n > 0", "label": "old"}
    new = {"id": 1, "when": "n > 0", "label": "new"}
    gone = {"id": 2, "when": "n > 0", "label": "gone"}
    feed(memory, change("u", after=new, lsn=20), change("c", after=old, lsn=10))
    feed(memory, change("d", before={"id": 2}, lsn=30), change("c", after=gone, lsn=15), at=2)
    assert memory.feed("asks", {"n": 1})["out"] == [{"n": 1, "labels": ["new"]}]


def test_portable_rows_keep_their_position(spark: SparkSession) -> None:
    memory = MemoryFlow(spark, users())
    feed(memory, change("c", after=GOOD, lsn=10), change("c", after={"id": 2, "name": "b"}, lsn=11))
    feed(memory, change("d", before={"id": 2}, lsn=12), {"payload": None}, at=2, key={"id": 2})
    entries = memory.state().held
    held = spark.createDataFrame(
        [(bytearray(e.key), bytearray(e.value)) for e in entries], "key BINARY, value BINARY"
    )
    schema = users().graph().tables()[0].schema
    table = PortableTable.of(spark, history=[to_spark_json(schema)], key=["id"])
    rows = table.unpack(held)
    assert rows.filter("position IS NULL").count() == 0
    assert {row["problem"] for row in table.check(rows).collect()} == {None}
    again = {(bytes(row["key"]), bytes(row["value"])) for row in table.pack(rows).collect()}
    assert again == {(entry.key, entry.value) for entry in entries}
    bad = rows.withColumn("position", f.lit(bytearray(b"1")))
    assert {row["problem"] is None for row in table.check(bad).collect()} == {False}


def test_upserts_of_selected_columns_name_the_key_as_they_do(spark: SparkSession) -> None:
    flow = Flow("upserts")
    rows = flow.stream("in", "u STRUCT<id: BIGINT, day: DATE>, n BIGINT, gone BOOLEAN")
    picked = rows.select("u.id AS id", "u.day AS day", "u.id AS copy", "gone")
    picked.to("by-id", key="id", format=Upsert(deleted="gone"))
    rows.select("u.day AS day", "n + 1 AS m").to("by-day", key="day", format="upsert")
    memory = MemoryFlow(spark, flow)
    row = {"id": 1, "day": "2026-11-15"}
    out = memory.feed(
        "in",
        {"u": row, "n": 1, "gone": False},
        {"u": row, "n": 1, "gone": True},
        {"u": {"id": None, "day": None}, "n": 1},
    )
    assert out["by-id"] == [{**row, "copy": 1}, {"id": 1, "$deleted": True}]
    assert out["by-day"] == [{"day": "2026-11-15", "m": 2}] * 2
    assert [letter["code"] for letter in out["dead-letters"]] == ["NO_KEY", "NO_KEY"]
