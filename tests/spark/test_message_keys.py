"""A record without a value ends a table's row: its message key says which, as text or as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord


def _keyed(spark: SparkSession, *types: str, version: str | None = None) -> MemoryFlow:
    flow = Flow("keyed")
    names = [f"k{place}" for place, _ in enumerate(types)]
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    table = flow.table("t", f"{columns}, v BIGINT", key=names, version=version)
    enriched = flow.stream("in", columns).enrich("e", table, on=names, into="row")
    enriched.matched.select("row.v AS v").to("found")
    enriched.missing.select("k0").to("missing")
    return MemoryFlow(spark, flow)


def _end(key: bytes | None, *, timestamp: int = 0) -> MemoryRecord:
    return MemoryRecord("t", None, key=key, sequence=1, offset=1, timestamp=timestamp)


def _row(values: list[Any], v: int = 1) -> dict[str, Any]:
    return {f"k{place}": value for place, value in enumerate(values)} | {"v": v}


def _codes(made: dict[str, list[Any]]) -> list[str]:
    return [letter["code"] for letter in made.get("dead-letters", [])]


# Types of the key, a key, message keys that are it, message keys that are not.
KEYS: list[tuple[list[str], list[Any], list[str], list[str]]] = [
    (
        ["BIGINT"],
        [42],
        ["42", " 42 ", '{"k0": 42}', '{"x": [1], "k0": 42}'],
        [
            "",
            '"42"',
            "42.0",
            "042",
            "4 2",
            "x",
            "{}",
            '{"k0": "42"}',
            '{"k0": null}',
            "[42]",
            "9e9",
        ],
    ),
    (["TINYINT"], [-5], ["-5", '{"k0": -5}'], ["200", "-5.0"]),
    (["BOOLEAN"], [True], ["true", '{"k0": true}'], ["1", "True", '"true"']),
    (["DECIMAL(10,2)"], [1.5], ["1.50", "1.5", '"1.5"', '{"k0": 1.5}'], ["1.505", "x"]),
    (
        ["DATE"],
        ["2026-11-15"],
        ["2026-11-15", '"2026-11-15"', '{"k0": "2026-11-15"}'],
        ["15.11.", '"'],
    ),
    (
        ["TIMESTAMP"],
        ["2026-11-15T10:00:00Z"],
        ["2026-11-15T10:00:00Z", '"2026-11-15T12:00:00+02:00"'],
        ["10:00", "0"],
    ),
    (["STRING"], ["abc"], ["abc", '"abc"', '{"k0": "abc"}', '"\\u0061bc"'], ['{"k0": 1}', "{}"]),
    (["STRING"], ["42"], ["42", '"42"'], []),
    (["STRING"], ["[1]"], ["[1]", '"[1]"'], []),
    (["STRING"], [' "a" b'], [' "a" b'], []),
    (["STRING"], ['"a" b'], ['"a" b', '"\\"a\\" b"'], []),
    (["STRING"], ['{"k0": 1'], ['{"k0": 1'], []),
    (["STRING"], [""], ["", '""'], []),
    (["STRING"], ["é\0😀"], ["é\0😀", '"é\\u0000😀"'], []),
    (
        ["BIGINT", "STRING"],
        [42, "a"],
        ['[42, "a"]', '[42,"a"]', '{"k1": "a", "k0": 42}'],
        ["42", '"a"', "[42]", '[42, "a", 1]', '["a", 42]', '{"k0": 42}', "[42, null]", "", "[42,"],
    ),
]


@pytest.mark.parametrize(("types", "key", "same", "other"), KEYS)
def test_a_message_key_ends_the_row_of_that_key_and_no_other(
    spark: SparkSession, types: list[str], key: list[Any], same: list[str], other: list[str]
) -> None:
    flow = _keyed(spark, *types)
    event = {name: value for name, value in _row(key).items() if name != "v"}
    for given in same:
        flow.batch([MemoryRecord("t", json.dumps(_row(key)).encode(), timestamp=1)])
        assert flow.feed("in", event)["found"], given
        assert flow.batch([_end(given.encode(), timestamp=2)]) == {}, given
        assert flow.feed("in", event)["missing"], given
        flow = _keyed(spark, *types)
    flow.batch([MemoryRecord("t", json.dumps(_row(key)).encode())])
    for given in other:
        assert _codes(flow.batch([_end(given.encode())])) == ["NO_KEY"], given
    assert flow.feed("in", event)["found"]


@pytest.mark.parametrize("key", [None, b"\xff", b'"\\ud800"', b'{"k0": "\xff"}'])
def test_a_record_without_a_value_and_without_a_key_of_text_is_a_dead_letter(
    spark: SparkSession, key: bytes | None
) -> None:
    made = _keyed(spark, "STRING").batch([_end(key)])
    [letter] = made["dead-letters"]
    assert (letter["code"], letter["raw"], letter["bytes"]) == ("NO_KEY", None, 0)
    assert letter["reason"].startswith("no key: a record without a value")


def test_a_stream_takes_no_record_without_a_value(spark: SparkSession) -> None:
    flow = Flow("events")
    flow.stream("in", "a BIGINT").to("out")
    made = MemoryFlow(spark, flow).batch([MemoryRecord("in", None, key=b"1")])
    [letter] = made["dead-letters"]
    assert (letter["code"], letter["reason"]) == ("BAD_JSON", "a record without a value")


def _versions(spark: SparkSession, *batches: list[int | None]) -> list[Any]:
    """Return what key 1 holds after changes with these versions; None ends the row without one."""
    flow = Flow("versions")
    table = flow.table("t", "id BIGINT NOT NULL, v BIGINT", key="id", version="v")
    flow.stream("in", "k BIGINT").enrich("e", table, on="k", into="row").matched.select(
        "row.v AS v"
    ).to("found")
    memory = MemoryFlow(spark, flow)
    offset = 0
    for batch in batches:
        records = []
        for version in batch:
            offset += 1
            value = None if version is None else json.dumps({"id": 1, "v": version}).encode()
            # Times go backwards: where a column orders changes they must not count.
            records.append(
                MemoryRecord(
                    "t", value, key=b"1", sequence=offset, offset=offset, timestamp=-offset
                )
            )
        assert memory.batch(records, seed=offset) == {}
    return [row["v"] for row in memory.feed("in", {"k": 1}).get("found", [])]


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ([5, None], []),
        ([None, 5], [5]),
        ([5, None, 4], []),
        ([5, None, 5], [5]),
        ([5, None, 6], [6]),
        ([5, None, 6, 5], [6]),
        ([5, None, None, 4], []),
        ([5, 3, None, 4, 6, None, 6], [6]),
    ],
)
def test_a_tombstone_without_a_version_ends_what_stood_before_it(
    spark: SparkSession, changes: list[int | None], held: list[int]
) -> None:
    assert _versions(spark, changes) == held
    assert _versions(spark, *[[change] for change in changes]) == held
