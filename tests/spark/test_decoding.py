"""Decoding is strict: a record is a row that fits exactly, or a dead letter that says why not."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from memory_flow import MIB, MemoryFlow, decode_all, decode_one, passing
from pyspark.sql import SparkSession

from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord

KIB = 1024

# Type, records' values that fit, values that do not. Values are JSON text.
TYPES = [
    ("TINYINT", ["0", "-128", "127"], ["128", "-129", "1.0", "1e1", '"1"', "true", "[]", "{}"]),
    ("SMALLINT", ["-32768", "32767"], ["32768", "-32769", "1.5", '""']),
    ("INT", ["-2147483648", "2147483647"], ["2147483648", "-2147483649", "1.0", "1e2", '"7"']),
    (
        "BIGINT",
        ["-9223372036854775808", "9223372036854775807", "-0"],
        ["9223372036854775808", "-9223372036854775809", "1.0", "1e3", '"1"', "9" * 500, "false"],
    ),
    ("FLOAT", ["1", "-1.5", "3.4e38", "1e-60"], ["1e39", "-1e39", "1e999", '"1.5"', "true"]),
    ("DOUBLE", ["1", "-1.5", "1.7e308", "1e-400"], ["1e309", "1e999", "-1e999", '"NaN"', "[1]"]),
    ("BOOLEAN", ["true", "false"], ['"true"', "0", "1", '""', "[true]"]),
    ("STRING", ['""', '"a"', '"\\u0000"', '"\\ud83d\\ude00"'], ["1", "1.5", "true", "{}", "[]"]),
    ("BINARY", ['""', '"AAEC"', '"YQ=="'], ['"*"', '"YQ="', '"a b"', "1", "[1, 2]"]),
    (
        "DATE",
        ['"2026-11-15"', '"0001-01-01"', '"2024-02-29"'],
        ['"2026-02-29"', '"2026-13-01"', '"15.11.2026"', '"2026-11-15T00:00:00Z"', '""', "20000"],
    ),
    (
        "TIMESTAMP",
        ['"2026-11-15T10:05:00Z"', '"2026-11-15T10:05:00.123456+02:00"', '"2026-11-15T10:05:00"'],
        ['"2026-11-15"', '"2026-11-15 10:05:00"', '"10:05"', '"2026-02-30T00:00:00Z"', "1", '""'],
    ),
    (
        "DECIMAL(5,2)",
        ["0", "1.5", "-999.99", '"1.50"', "1.500", "1e2"],
        ["1000", "1.505", '"x"', '""', "true", "1e400", "1e999999999", '" 1"', "1" * 200],
    ),
    ("ARRAY<INT>", ["[]", "[1, null]"], ["1", "{}", '"[]"', '["1"]', "[1.0]", "[[1]]"]),
    ("MAP<STRING, INT>", ["{}", '{"": 1, "a": null}'], ["[]", '{"a": "1"}', '"{}"', "1"]),
    ("STRUCT<x: INT>", ["{}", '{"x": 1, "y": 2}'], ["[]", '{"x": "1"}', "1", '"{}"']),
]
FITS = [(type_, value) for type_, values, _ in TYPES for value in values]
MISFITS = [(type_, value) for type_, _, values in TYPES for value in values]


def _code(made: tuple[str, Any]) -> Any:
    name, row = made
    return row["code"] if name == "dead-letters" else row


@pytest.mark.parametrize("type_", [each[0] for each in TYPES])
def test_a_value_that_fits_its_type_is_taken(spark: SparkSession, type_: str) -> None:
    values = [value for each, value in FITS if each == type_]
    records = [b'{"a": %s}' % value.encode() for value in values]
    for record, (name, _) in zip(
        records, decode_all(spark, f"a {type_} NOT NULL", records), strict=True
    ):
        assert name == "out", record


@pytest.mark.parametrize("type_", [each[0] for each in TYPES])
def test_a_value_of_another_type_is_a_dead_letter_that_names_the_field(
    spark: SparkSession, type_: str
) -> None:
    values = [value for each, value in MISFITS if each == type_]
    records = [b'{"a": %s}' % value.encode() for value in values]
    for record, (name, letter) in zip(
        records, decode_all(spark, f"a {type_} NOT NULL", records), strict=True
    ):
        assert name == "dead-letters", (record, letter)
        assert letter["code"] == "WRONG_TYPE", (record, letter)
        assert "field 'a" in letter["reason"], letter


BAD_JSON = [
    b"",
    b"x",
    b"{",
    b'{"a": 1',
    b'{"a": 1,}',
    b'{"a" 1}',
    b"{'a': 1}",
    b"{a: 1}",
    b'{"a": 01}',
    b'{"a": +1}',
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": .5}',
    b'{"a": 1} // a comment',
    b'{"a": "\t"}',
    b'{"a": "\\x"}',
    b'{"a": "\\u12"}',
    b'{"a": 1} {"a": 2}',
    b'{"a": 1} x',
    b'{"a": 1}]',
    b'{"a": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": 1, "unknown": [1}',
    b'{"a": 1}\0',
    '{"a": 1}'.encode("utf-16-le"),
    '{"a": 1}'.encode("utf-32-be"),
]


@pytest.mark.parametrize("schema", ["a BIGINT", "b BIGINT"])
def test_text_that_is_not_one_json_value_is_a_dead_letter(spark: SparkSession, schema: str) -> None:
    for record, made in zip(BAD_JSON, decode_all(spark, schema, BAD_JSON), strict=True):
        wanted = ("BAD_JSON", "WRONG_TYPE", "NOT_AN_OBJECT") if record in _EITHER else ("BAD_JSON",)
        assert _code(made) in wanted, (record[:60], made)


# The first thing that is wrong with these may be their type or their text.
_EITHER = {b"", BAD_JSON[20], b'{"a": "\t"}', b'{"a": "\\x"}', b'{"a": "\\u12"}', BAD_JSON[21]}


@pytest.mark.parametrize("record", [b"[]", b"1", b'"a"', b"null", b"true", b'[{"a": 1}]', b" \t"])
def test_json_that_is_no_object_is_a_dead_letter(spark: SparkSession, record: bytes) -> None:
    assert _code(decode_one(spark, "a BIGINT", record)) == "NOT_AN_OBJECT"


@pytest.mark.parametrize(
    "middle",
    [
        b"\x80",
        b"\xff",
        b"\xc0\xaf",  # overlong
        b"\xc1\xbf",
        b"\xe0\x80\xaf",
        b"\xf0\x80\x80\xaf",
        b"\xed\xa0\x80",  # a surrogate
        b"\xed\xbf\xbf",
        b"\xf4\x90\x80\x80",  # behind the last character
        b"\xf5\x80\x80\x80",
        b"\xe4\xb8",  # cut
        b"\xc3",
        b"caf\xe9",  # Latin 1
    ],
)
def test_bytes_that_are_not_utf8_are_a_dead_letter_wherever_they_stand(
    spark: SparkSession, middle: bytes
) -> None:
    records = [b'{"a": "%s"}' % middle, b'{"%s": "x"}' % middle, b'{"a": "x"}' + middle]
    made = decode_all(spark, "a STRING", records)
    assert [_code(each) for each in made] == ["NOT_UTF8"] * 3


@pytest.mark.parametrize("escape", ["\\ud800", "\\udfff", "\\ud800x", "\\udc00\\ud800", "é\\ud83d"])
def test_half_of_a_surrogate_pair_is_a_dead_letter_and_no_question_mark(
    spark: SparkSession, escape: str
) -> None:
    record = f'{{"a": "{escape}"}}'.encode()
    assert _code(decode_one(spark, "a STRING", record)) == "NOT_UTF8"
    record = f'{{"a": {{"{escape}": 1}}}}'.encode()
    assert _code(decode_one(spark, "a MAP<STRING, INT>", record)) == "BAD_JSON"


def test_text_of_every_length_in_utf8_comes_out_as_it_went_in(spark: SparkSession) -> None:
    text = "\x7f\x80߿ࠀ\ud7ff\ue000\uffff\U00010000\U0010ffff"
    record = json.dumps({"a": text}, ensure_ascii=False).encode()
    assert decode_one(spark, "a STRING", record) == ("out", {"a": text})
    assert decode_one(spark, "a STRING", json.dumps({"a": text}).encode()) == ("out", {"a": text})


def test_a_byte_order_mark_before_a_record_is_passed_over(spark: SparkSession) -> None:
    assert decode_one(spark, "a BIGINT", b'\xef\xbb\xbf{"a": 1}') == ("out", {"a": 1})


def test_utf16_is_no_utf8_whatever_mark_it_begins_with(spark: SparkSession) -> None:
    record = '{"a": 1}'.encode("utf-16")
    assert _code(decode_one(spark, "a BIGINT", record)) == "NOT_UTF8"


def test_a_field_given_twice_counts_the_last_time(spark: SparkSession) -> None:
    records = [b'{"a": 1, "a": 2}', b'{"a": "x", "a": 2}', b'{"a": 1, "a": null}']
    made = decode_all(spark, "a BIGINT NOT NULL", records)
    assert [_code(each) for each in made] == [{"a": 2}, "WRONG_TYPE", "NULL_FIELD"]


def test_fields_may_come_in_any_order_and_unknown_ones_are_passed_over(
    spark: SparkSession,
) -> None:
    deep = b"[" * 500 + b"]" * 500
    record = b'{"z": {"a": 9}, "b": 2, "Z": ' + deep + b', "a": 1, "A": 7, "": null}'
    assert decode_one(spark, "a BIGINT, b BIGINT", record) == ("out", {"a": 1, "b": 2})


# JSON text, and text that is nearly JSON: what a decoder in a hurry might take for something else.
NEARLY = [
    "0",
    "-0",
    "1",
    "-1",
    "007",
    "-01",
    "1.",
    "1.0",
    "-0.0",
    ".5",
    "-.5",
    "0.5",
    "00.5",
    "1e3",
    "1E-2",
    "12.34",
    "-12.34",
    "1.50",
    "127",
    "128",
    "-129",
    "32768",
    "2147483647",
    "2147483648",
    "999999999999999",
    "9999999999999999",
    "123456789012345.6",
    "0.1234567890123456",
    "0.00000000000001",
    "999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999",
    "-9223372036854775808",
    "true",
    "false",
    "tru",
    "truer",
    "falsely",
    "null",
    "nul",
    "nullx",
    "-",
    "--",
    "--1",
    "+1",
    "1-",
    "1x",
    "[]",
    "{}",
    "'a'",
    '"',
    '""',
    '"a"',
    '"a"b',
    '"é"',
    '"\\u00e9"',
    '"\\n"',
    '"\\"',
    '"\x7f"',
    '"\x01"',
    '"😀"',
    '"a b"',
    "1 2",
    "- 1",
    "",
]


@pytest.mark.parametrize(
    "type_", ["TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING"]
)
@pytest.mark.parametrize("null", ["", " NOT NULL"])
def test_the_order_of_fields_does_not_change_what_a_value_is(
    spark: SparkSession, type_: str, null: str
) -> None:
    schema = f"a {type_}{null}, b INT"
    # Fields in the schema's order go through a decoder of their own.
    in_order = decode_all(spark, schema, [f'{{"a": {v}, "b": 1}}'.encode() for v in NEARLY])
    others = decode_all(spark, schema, [f'{{"b": 1, "a": {v}}}'.encode() for v in NEARLY])
    for value, one, other in zip(NEARLY, in_order, others, strict=True):
        assert json.dumps(_code(one)) == json.dumps(_code(other)), value


def test_blanks_may_stand_wherever_json_lets_them(spark: SparkSession) -> None:
    records = [
        b'{"a":1,"b":"x y"}',
        b' \t{ "a" : 1 , "b"\n: "x y" }\r\n ',
        b'{"b"  :"x y",\t"a":1}',
    ]
    made = decode_all(spark, "a BIGINT, b STRING", records)
    assert made == [("out", {"a": 1, "b": "x y"})] * 3


def test_records_of_several_forms_may_come_one_behind_the_other(spark: SparkSession) -> None:
    plain: list[dict[str, Any]] = [{"a": n, "b": f"x{n}"} for n in range(100)]
    turned = [{"b": each["b"], "a": each["a"]} for each in plain]
    longer = [{**each, "c": [1]} for each in plain]
    mixed = [each for three in zip(plain, turned, longer, strict=True) for each in three]
    for values in (plain + turned + longer + plain, mixed):
        made = MemoryFlow(spark, passing("a BIGINT, b STRING")).feed("in", *values)
        assert list(made) == ["out"]
        assert sorted(row["a"] for row in made["out"]) == sorted(each["a"] for each in values)
        assert all(row == {"a": row["a"], "b": f"x{row['a']}"} for row in made["out"])


@dataclass
class Part:
    """Nested, with a default."""

    must: int
    may: int | None
    given: str = "g"


@dataclass
class Whole:
    """One field for each way a value may be absent."""

    must: int
    may: int | None
    parts: list[Part]
    by_name: dict[str, Part | None]
    texts: list[str | None]
    part: Part | None = None
    number: int = 7
    listed: list[int] = field(default_factory=lambda: [1, 2])
    named: dict[str, int] = field(default_factory=lambda: {"x": 1})


WHOLE: dict[str, Any] = {"must": 1, "may": None, "parts": [], "by_name": {}, "texts": []}
FILLED = WHOLE | {"part": None, "number": 7, "listed": [1, 2], "named": {"x": 1}}


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        ({"must": None}, "NULL_FIELD", "field 'must' must not be null"),
        ({"number": None}, "NULL_FIELD", "field 'number' must not be null"),
        ({"parts": None}, "NULL_FIELD", "field 'parts' must not be null"),
        ({"parts": [None]}, "NULL_FIELD", "field 'parts[0]' must not be null"),
        ({"parts": [{"may": 1}]}, "MISSING_FIELD", "field 'parts[0].must' is missing"),
        ({"part": {}}, "MISSING_FIELD", "field 'part.must' is missing"),
        ({"part": {"must": None}}, "NULL_FIELD", "field 'part.must' must not be null"),
        ({"part": {"must": "1"}}, "WRONG_TYPE", "field 'part.must': expected an integer"),
        ({"by_name": {"k": {}}}, "MISSING_FIELD", "field 'by_name.k.must' is missing"),
        ({"named": {"k": None}}, "NULL_FIELD", "field 'named.k' must not be null"),
        ({"listed": [1, None]}, "NULL_FIELD", "field 'listed[1]' must not be null"),
        ({"texts": [None, 1]}, "WRONG_TYPE", "field 'texts[1]': expected a string, found the"),
    ],
)
def test_a_null_or_a_gap_where_none_is_allowed_is_a_dead_letter(
    spark: SparkSession, change: dict[str, Any], code: str, reason: str
) -> None:
    name, letter = decode_one(spark, Whole, json.dumps(WHOLE | change).encode())
    assert (name, letter["code"]) == ("dead-letters", code)
    assert reason in letter["reason"]


@pytest.mark.parametrize("gap", ["must", "parts", "by_name", "texts"])
def test_a_field_without_a_default_must_be_there(spark: SparkSession, gap: str) -> None:
    record = {name: value for name, value in WHOLE.items() if name != gap}
    name, letter = decode_one(spark, Whole, json.dumps(record).encode())
    assert (name, letter["code"]) == ("dead-letters", "MISSING_FIELD")
    assert letter["reason"] == f"field '{gap}' is missing"


def test_what_is_absent_takes_its_default_and_what_may_be_null_is_null(
    spark: SparkSession,
) -> None:
    part = {"must": 1, "may": None, "given": "g"}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"part": {"must": 1}}, {"part": part}),
        ({"parts": [{"must": 1, "given": "h"}]}, {"parts": [part | {"given": "h"}]}),
        ({"by_name": {"k": None, "": {"must": 1}}}, {"by_name": {"k": None, "": part}}),
        ({"texts": [None, "a"]}, {"texts": [None, "a"]}),
        ({"listed": [], "named": {}, "number": 0}, {"listed": [], "named": {}, "number": 0}),
    ]
    for change, wanted in cases:
        made = decode_one(spark, Whole, json.dumps(WHOLE | change).encode())
        assert made == ("out", FILLED | wanted)
    without_may = {name: value for name, value in WHOLE.items() if name != "may"}
    assert decode_one(spark, Whole, json.dumps(without_may).encode()) == ("out", FILLED)


def test_a_dead_letter_tells_where_the_record_stood_and_what_it_was(spark: SparkSession) -> None:
    flow = Flow("letters", dead_letters="rejected")
    flow.stream("in", "a BIGINT", uid="numbers").to("out")
    record = MemoryRecord("numbers", b"{\xff}", partition=3, offset=2**40, timestamp=1234567890123)
    made = MemoryFlow(spark, flow).batch([record])
    assert made == {
        "rejected": [
            {
                "job": "letters",
                "source": "numbers",
                "topic": "in",
                "partition": 3,
                "offset": 2**40,
                "timestamp": 1234567890123,
                "code": "NOT_UTF8",
                "reason": "not UTF-8 at byte 1",
                "bytes": 3,
                "raw": base64.b64encode(b"{\xff}").decode(),
            }
        ]
    }


def test_a_dead_letter_holds_256_kib_of_its_record_and_tells_the_full_length(
    spark: SparkSession,
) -> None:
    record = b"x" * (300 * KIB)
    _, letter = decode_one(spark, "a STRING", record)
    assert (letter["code"], letter["bytes"]) == ("BAD_JSON", 300 * KIB)
    assert base64.b64decode(letter["raw"]) == record[: 256 * KIB]


def test_a_record_may_be_as_large_as_allowed_and_no_larger(spark: SparkSession) -> None:
    frame = len(b'{"a": ""}')
    fits, too_large = ({"a": "x" * (limit - frame)} for limit in (1000, 1001))
    made = decode_all(
        spark,
        "a STRING",
        [json.dumps(fits).encode(), json.dumps(too_large).encode()],
        max_record=1000,
    )
    assert made[0] == ("out", fits)
    assert _code(made[1]) == "TOO_LARGE"
    assert made[1][1]["reason"] == "the record has 1001 bytes, and the limit is 1000"
    huge = {"a": "x" * 21_000_000}
    made = decode_all(
        spark, "a STRING", [json.dumps(huge, ensure_ascii=False).encode()], max_record=64 * MIB
    )
    assert made == [("out", huge)]


def test_one_bad_record_does_not_touch_its_neighbours(spark: SparkSession) -> None:
    flow = MemoryFlow(spark, passing("a BIGINT NOT NULL, b STRING"))
    values: list[Any] = [{"a": 1, "b": "x"}, {"a": 2, "b": 3}, {"a": 4}, b'{"a": 5, "b":', {"a": 6}]
    made = flow.feed("in", *values)
    assert made["out"] == [{"a": 1, "b": "x"}, {"a": 4, "b": None}, {"a": 6, "b": None}]
    assert [letter["offset"] for letter in made["dead-letters"]] == [1, 3]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"id": None, "v": 1}, "NULL_FIELD"),
        ({"v": 1}, "MISSING_FIELD"),
        ({"$deleted": True}, "NO_KEY"),
        ({"id": None, "$deleted": True}, "NO_KEY"),
        ({"id": "1", "$deleted": True}, "WRONG_TYPE"),
        ({"id": 1, "$deleted": "yes"}, "WRONG_TYPE"),
        ({"id": 1, "$deleted": None}, "WRONG_TYPE"),
        ({"id": 1, "$deleted": False}, "MISSING_FIELD"),
    ],
)
def test_a_change_that_cannot_be_kept_is_a_dead_letter(
    spark: SparkSession, record: Any, code: str
) -> None:
    assert [letter["code"] for letter in _table(spark).feed("t", record)["dead-letters"]] == [code]


def test_a_tombstone_needs_its_key_alone(spark: SparkSession) -> None:
    flow = _table(spark)
    flow.feed("t", {"id": 1, "v": 5}, {"id": 2, "v": 6})
    assert flow.feed("t", b'{"$deleted": true, "v": null, "id": 1}') == {}
    made = flow.feed("in", {"k": 1}, {"k": 2})
    assert made == {"missing": [{"k": 1}], "out": [{"k": 2, "row": {"id": 2, "v": 6}}]}


def test_a_stream_knows_no_tombstones(spark: SparkSession) -> None:
    assert decode_one(spark, "a BIGINT", b'{"a": 1, "$deleted": "yes"}') == ("out", {"a": 1})


def _table(spark: SparkSession) -> MemoryFlow:
    flow = Flow("tables")
    table = flow.table("t", "id BIGINT NOT NULL, v BIGINT NOT NULL", key="id")
    enriched = flow.stream("in", "k BIGINT").enrich("e", table, on="k", into="row")
    enriched.matched.to("out")
    enriched.missing.to("missing")
    return MemoryFlow(spark, flow)
