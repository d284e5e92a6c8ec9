"""What Pulsar is told of a topic, and what it tells: retention, schemas, ledgers, partitions."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.topics import FOREVER, MadeTopic, Retention, WantedTopic
from headgate.connectors.pulsar.connector import PulsarConnector
from headgate.connectors.pulsar.keeping import (
    NOTHING,
    Kept,
    differences,
    read_retention,
    retention_policies,
    wanted_on_pulsar,
)
from headgate.connectors.pulsar.names import EntryId
from headgate.connectors.pulsar.runs.positions import next_entries
from headgate.connectors.pulsar.topics.ledgers import Ledgers, read_ledgers
from headgate.connectors.pulsar.topics.producing import java_hash, partition_of
from headgate.connectors.pulsar.topics.schemas import can_write, json_schema, schema_differences
from headgate.flow.schemas.schema import Field, Primitive, Schema, Unknown, schema_of
from headgate.jobs.topics.setup import judge

WEEK = Retention(timedelta(days=7))


def policies(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


@pytest.mark.parametrize(
    ("retention", "minutes"),
    [(WEEK, 10080), (FOREVER, -1), (Retention(timedelta(seconds=61)), 2), (NOTHING, 0)],
)
def test_a_retention_is_minutes_of_any_size(retention: Retention, minutes: int) -> None:
    assert retention_policies(retention) == policies(minutes, -1)


@pytest.mark.parametrize(
    ("told", "retention", "text"),
    [
        (policies(10080, -1), WEEK, "7d"),
        (policies(-1, -1), FOREVER, "infinite"),
        (policies(0, 0), NOTHING, "0s"),
        (policies(0, -1), NOTHING, "0s"),
        (None, NOTHING, "0s"),
        (policies(-1, 512), Retention(None, 512 << 20), "infinite, 512MiB at most"),
    ],
)
def test_policies_say_how_long_records_are_kept(
    told: dict[str, int] | None, retention: Retention, text: str
) -> None:
    assert read_retention(told) == retention
    assert str(retention) == text


def test_a_topic_that_is_there_differs_only_in_what_was_said() -> None:
    def found(kept: Kept, **asked: Any) -> tuple[str, ...]:
        return differences(WantedTopic(name="t", **asked), partitions=4, kept=kept)

    usual = Kept(WEEK, compacted=False, deduplicated=False)
    assert found(usual) == ()
    assert found(usual, partitions=4, retention=WEEK) == ()
    assert found(usual, partitions=3, deduplicate=True) == (
        "it has 4 partitions instead of 3",
        "its deduplication is off",
    )
    assert found(usual, compact=True) == (
        "it is not compacted",
        "its retention is 7d instead of infinite",
    )
    limited = Kept(Retention(timedelta(days=7), 1 << 20), compacted=False, deduplicated=True)
    assert found(limited, retention=WEEK, deduplicate=True) == (
        "its retention is 7d, 1MiB at most instead of 7d",
    )


def test_columns_become_a_json_schema_as_pulsar_writes_it_down() -> None:
    columns = schema_of(
        "id BIGINT NOT NULL, name STRING, at TIMESTAMP NOT NULL, raw BINARY, d DECIMAL(10,2), "
        "who STRUCT<id: INT NOT NULL, tags: ARRAY<STRING>>, rates MAP<STRING, DOUBLE>"
    )
    told = json_schema("enriched-orders", columns)
    assert told["type"] == "JSON"
    assert json.loads(told["schema"]) == {
        "type": "record",
        "name": "EnrichedOrders",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "at", "type": "string"},
            {"name": "raw", "type": ["null", "bytes"], "default": None},
            {
                "name": "d",
                "type": [
                    "null",
                    {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
                ],
                "default": None,
            },
            {
                "name": "who",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "EnrichedOrders_who",
                        "fields": [
                            {"name": "id", "type": "int"},
                            {
                                "name": "tags",
                                "type": [
                                    "null",
                                    {"type": "array", "items": ["null", "string"]},
                                ],
                                "default": None,
                            },
                        ],
                    },
                ],
                "default": None,
            },
            {
                "name": "rates",
                "type": ["null", {"type": "map", "values": ["null", "double"]}],
                "default": None,
            },
        ],
    }


def test_a_default_is_one_of_the_first_type() -> None:
    columns = Schema(
        (
            Field("a", Primitive("int"), nullable=True, default=7),
            Field("b", Primitive("string"), nullable=False, default="x"),
            Field("c", Primitive("binary"), nullable=False, default="eA=="),
        )
    )
    fields = json.loads(json_schema("9-lives", columns)["schema"])["fields"]
    assert fields == [
        {"name": "a", "type": ["int", "null"], "default": 7},
        {"name": "b", "type": "string", "default": "x"},
        {"name": "c", "type": "bytes"},
    ]


def test_columns_of_no_known_type_or_an_odd_name_are_not_written_down() -> None:
    assert can_write(schema_of("a INT"))
    assert not can_write(Schema((Field("a", Unknown(), nullable=True),)))
    assert not can_write(schema_of("`a b` INT"))
    assert not can_write(schema_of("s STRUCT<`a-b`: INT>"))


def test_a_registered_schema_is_compared_by_its_columns() -> None:
    columns = schema_of("id BIGINT NOT NULL, name STRING, who STRUCT<id: INT>")
    registered = json_schema("other", columns)["schema"]
    assert schema_differences(registered, columns) == ()
    assert schema_differences(registered, schema_of("id STRING, name STRING, x INT")) == (
        "its schema has column 'id' as long instead of string",
        "its schema has no column 'x'",
    )
    assert schema_differences('"string"', columns) == ("its schema is not a record",)
    # A Java class may have an int, a float and an enum, whose JSON these columns read.
    kinds = ("int", "float", {"type": "enum", "name": "Kind", "symbols": ["A"]})
    fields = [{"name": name, "type": kind} for name, kind in zip("abc", kinds, strict=True)]
    of_java = json.dumps({"type": "record", "name": "User", "fields": fields})
    assert schema_differences(of_java, schema_of("a BIGINT, b DOUBLE, c STRING")) == ()
    assert schema_differences(of_java, schema_of("a STRING")) == (
        "its schema has column 'a' as int instead of string",
    )


def stats(*ledgers: tuple[int, int], open_entries: int, last: str) -> dict[str, Any]:
    return {
        "ledgers": [{"ledgerId": each, "entries": count} for each, count in ledgers],
        "currentLedgerEntries": open_entries,
        "lastConfirmedEntry": last,
        "totalSize": 10,
        "cursors": {"pulsar.dedup": {}},
    }


def test_ledgers_tell_where_a_partition_begins_and_ends() -> None:
    kept = read_ledgers("t", stats((5, 3), (8, 0), (9, 0), open_entries=2, last="9:1"))
    assert kept == Ledgers(
        "t", ((5, 3), (8, 0), (9, 2)), EntryId(9, 2), 10, frozenset({"pulsar.dedup"})
    )
    assert (kept.entries, kept.first, kept.last) == (5, EntryId(5, 0), EntryId(9, 1))
    assert [str(kept.back(count)) for count in (1, 2, 3, 5, 99)] == [
        "9:1",
        "9:0",
        "5:2",
        "5:0",
        "5:0",
    ]


def test_a_partition_without_entries_begins_where_it_ends() -> None:
    empty = read_ledgers("t", stats((7, 0), open_entries=0, last="7:-1"))
    assert (empty.entries, empty.first, empty.last) == (0, EntryId(7, 0), None)
    assert empty.back(3) == EntryId(7, 0)


@pytest.mark.parametrize(
    ("key", "hashed"),
    # As String.hashCode() gives it, without the sign.
    [
        ("", 0),
        ("42", 1662),
        ("hello", 99162322),
        ("polygenelubricants", 0),
        ("Grüße, 🙂", 1982502672),
    ],
)
def test_keys_go_where_java_puts_them(key: str, hashed: int) -> None:
    assert java_hash(key.encode()) == hashed
    assert partition_of(key.encode(), 4) == hashed % 4


def test_a_position_names_the_plain_topics_it_lies_in() -> None:
    position = {
        "format": 1,
        "topics": {
            "persistent://t/n/a": {"partitioned": True, "next": ["12:5", "-1:0"]},
            "persistent://t/n/b": {"partitioned": False, "next": ["3:0"]},
        },
    }
    assert [*next_entries(json.dumps(position))] == [
        ("persistent://t/n/a-partition-0", EntryId(12, 5)),
        ("persistent://t/n/a-partition-1", EntryId(-1, 0)),
        ("persistent://t/n/b", EntryId(3, 0)),
    ]


@pytest.mark.parametrize(
    ("role", "retention", "deduplicated", "told"),
    [
        (TopicRole.TABLE, FOREVER, False, ()),
        (TopicRole.TABLE, WEEK, False, ("its rows are deleted after 7d",)),
        (TopicRole.STREAM, WEEK, False, ()),
        (
            TopicRole.STREAM,
            NOTHING,
            False,
            ("it has no retention, so records may be deleted before they are read",),
        ),
        (TopicRole.OUTPUT, WEEK, True, ()),
        (
            TopicRole.DEAD_LETTERS,
            WEEK,
            False,
            ("its deduplication is off, which exactly-once needs",),
        ),
    ],
)
def test_a_topic_on_pulsar_that_will_not_do_is_warned_of(
    role: TopicRole, retention: Retention, deduplicated: bool, told: tuple[str, ...]
) -> None:
    made = MadeTopic(
        "t", 4, "w", existed=True, retention=retention, deduplicated=deduplicated, warnings=("odd",)
    )
    assert judge(PulsarConnector(), role, made, SetupOptions()) == (*told, "odd")


def test_what_a_flow_writes_on_pulsar_is_deduplicated_and_nothing_is_compacted() -> None:
    wanted = {role: wanted_on_pulsar("t", role, SetupOptions()) for role in TopicRole}
    assert [role for role, each in wanted.items() if each.deduplicate] == [
        TopicRole.OUTPUT,
        TopicRole.DEAD_LETTERS,
    ]
    assert not any(each.compact for each in wanted.values())
    assert wanted[TopicRole.TABLE].retention == FOREVER
