"""CSV, from records to rows and back, against Python's own reader and writer."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_flow import MemoryFlow
from pyspark.sql import SparkSession
from test_round_trip import NAMES, PRIMITIVES

from examples import examples
from headgate import Flow
from headgate._kernel.memory_query import MemoryRecord
from headgate.flow.formats.csv_records import join_fields, split_fields
from headgate.flow.schemas.schema import Field, Primitive, Schema, type_to_ddl
from headgate.formats import Csv

# A text that stands for null and is no value of the strategies below.
NULL = "\\N\u2205"
FORMS = st.sampled_from(
    [Csv(nulls=NULL), Csv(";", nulls=NULL), Csv("\t", "'", nulls=NULL), Csv("|", "~", nulls=NULL)]
)

Typed = tuple[str, str, bool]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, list[dict[str, Any]]]:
    """Return columns of all types that CSV has, and rows as JSON has them."""
    columns: list[Typed] = draw(
        st.lists(
            st.tuples(NAMES, st.sampled_from(sorted(PRIMITIVES)), st.booleans()),
            min_size=1,
            max_size=6,
            unique_by=lambda column: column[0].lower(),
        )
    )
    row = st.fixed_dictionaries(
        {
            name: st.none() | PRIMITIVES[kind] if nullable else PRIMITIVES[kind]
            for name, kind, nullable in columns
        }
    )
    schema = Schema(tuple(Field(name, Primitive(kind), null) for name, kind, null in columns))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    return schema, [{name: row[name] for name in schema.names} for row in rows]


def as_text(value: Any) -> str:
    """Return a value as a field of CSV."""
    match value:
        case None:
            return NULL
        case Decimal():
            return format(value, "f")
        case str():
            return value
    return json.dumps(value)


def write(form: Csv, row: dict[str, Any]) -> bytes:
    """Return a record that Python writes."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=form.delimiter, quotechar=form.quote, lineterminator="")
    writer.writerow([as_text(value) for value in row.values()])
    return out.getvalue().encode()


def read(form: Csv, record: bytes) -> list[str]:
    """Return the fields that Python reads."""
    lines = io.StringIO(record.decode(), newline="")
    (row,) = csv.reader(lines, delimiter=form.delimiter, quotechar=form.quote, strict=True)
    return row


def comparable(schema: Schema, texts: list[str]) -> list[Any]:
    """Return fields as values that are equal if they mean the same."""
    kinds = [type_to_ddl(field.type) for field in schema.fields]
    return [
        Decimal(text) if text != NULL and kind.startswith(("DECIMAL", "FLOAT", "DOUBLE")) else text
        for text, kind in zip(texts, kinds, strict=True)
    ]


def feed(flow: MemoryFlow, records: list[bytes]) -> dict[str, list[bytes]]:
    return flow.records(
        MemoryRecord("in", record, sequence=place, offset=place)
        for place, record in enumerate(records)
    )


@given(tables(), FORMS, FORMS)
@settings(max_examples=examples(120))
def test_what_python_writes_is_read_and_what_is_written_python_reads(
    spark: SparkSession, table: tuple[Schema, list[dict[str, Any]]], given_as: Csv, taken_as: Csv
) -> None:
    schema, rows = table
    flow = Flow("csv")
    stream = flow.stream("in", schema, format=given_as)
    stream.to("json")
    stream.to("csv", format=taken_as)
    made = feed(MemoryFlow(spark, flow), [write(given_as, row) for row in rows])
    assert not made.get("dead-letters"), made
    read_back = [json.loads(record, parse_float=Decimal) for record in made["json"]]
    for found, row in zip(read_back, rows, strict=True):
        for name, value in row.items():
            wanted = Decimal(str(value)) if isinstance(value, float | Decimal) else value
            assert found[name] == wanted, (name, found[name], value)
    texts = [[as_text(value) for value in row.values()] for row in rows]
    found_texts = [read(taken_as, record) for record in made["csv"]]
    assert [comparable(schema, row) for row in found_texts] == [
        comparable(schema, row) for row in texts
    ]


@given(
    st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=6), min_size=1, max_size=5),
    st.sampled_from([Csv(), Csv(";", nulls="NULL"), Csv("\t", "'", nulls="-")]),
    st.integers(0, 3),
)
@settings(max_examples=examples(120))
def test_null_the_empty_text_and_the_text_of_null_stay_apart(
    spark: SparkSession, values: list[str | None], form: Csv, place: int
) -> None:
    values.insert(min(place, len(values)), form.nulls)
    names = [f"c{i}" for i in range(len(values))]
    flow = Flow("texts")
    rows = flow.stream("in", ", ".join(f"{name} STRING" for name in names))
    rows.to("out", format=form)
    flow.stream("back", ", ".join(f"{name} STRING" for name in names), format=form).to("json")
    memory = MemoryFlow(spark, flow)
    row = dict(zip(names, values, strict=True))
    (record,) = feed(memory, [json.dumps(row).encode()])["out"]
    # The reader and the writer in Python, for views and tests, are the same.
    assert record.decode() == join_fields(form, values)
    assert split_fields(form, record.decode()) == values
    (back,) = memory.records([MemoryRecord("back", record)])["json"]
    assert json.loads(back) == row


SCHEMA = "id BIGINT NOT NULL, price DOUBLE, name STRING"
BAD = [
    (b"1,2", "BAD_CSV", "expected 3 fields, found 2: there is none for column 'name'"),
    (b"", "BAD_CSV", "expected 3 fields, found 1: there is none for column 'price'"),
    (
        b"1,2,a,b",
        "BAD_CSV",
        "expected 3 fields, found 4: the last should be that of column 'name'",
    ),
    (b'1,2,"a', "BAD_CSV", "field 'name': its quote is not closed"),
    (b'1,"2" ,a', "BAD_CSV", "field 'price': text behind its closing quote"),
    (b'1,2,a"b', "BAD_CSV", "field 'name': a quote in a field that does not begin with one"),
    (b"1,2,a\nb", "BAD_CSV", "field 'name': an end of a line outside of quotes"),
    (b"1,2,a\n2,3,b", "BAD_CSV", "field 'name': an end of a line outside of quotes"),
    (b",2,a", "NULL_FIELD", "field 'id' must not be null"),
    (b'"",2,a', "WRONG_TYPE", "field 'id': expected an integer, found no text"),
    (b" 1,2,a", "WRONG_TYPE", "field 'id': expected an integer, found ' 1'"),
    (b"1.0,2,a", "WRONG_TYPE", "field 'id': expected an integer, found '1.0'"),
    (b"007,2,a", "WRONG_TYPE", "field 'id': expected an integer, found '007'"),
    (b"+7,2,a", "WRONG_TYPE", "field 'id': expected an integer, found '+7'"),
    (
        b"9223372036854775808,2,a",
        "WRONG_TYPE",
        "field 'id': expected an integer, found '9223372036854775808'",
    ),
    ("1,\u0662,a".encode(), "WRONG_TYPE", "field 'price': expected a number, found '\u0662'"),
    (b"1,.5,a", "WRONG_TYPE", "field 'price': expected a number, found '.5'"),
    (b"1,5.,a", "WRONG_TYPE", "field 'price': expected a number, found '5.'"),
    (b"1,01.5,a", "WRONG_TYPE", "field 'price': expected a number, found '01.5'"),
    (b"1,1e,a", "WRONG_TYPE", "field 'price': expected a number, found '1e'"),
    (b"1,nan,a", "WRONG_TYPE", "field 'price': expected a number, found 'nan'"),
    (b"1,1e999,a", "WRONG_TYPE", "field 'price': expected a number a double can hold"),
    (b"1,2,\xff", "NOT_UTF8", "not UTF-8 at byte 4"),
    (b"1,2,aaaaaaaa\xc3", "NOT_UTF8", "not UTF-8 at byte 12"),
]


def decode(spark: SparkSession, schema: str, record: bytes, form: Any = "csv") -> Any:
    """Return what a record becomes: a row, or the code and the reason of a dead letter."""
    flow = Flow("one")
    flow.stream("in", schema, format=form).to("out")
    ((name, (made,)),) = feed(MemoryFlow(spark, flow), [record]).items()
    value = json.loads(made)
    return value if name == "out" else (value["code"], value["reason"])


@pytest.mark.parametrize(("record", "code", "reason"), BAD)
def test_a_record_that_is_not_exactly_a_row_is_a_dead_letter(
    spark: SparkSession, record: bytes, code: str, reason: str
) -> None:
    found_code, found_reason = decode(spark, SCHEMA, record)
    assert found_code == code
    assert found_reason.startswith(reason)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("TINYINT", "128", "an 8-bit integer"),
        ("SMALLINT", "-32769", "a 16-bit integer"),
        ("INT", "2147483648", "a 32-bit integer"),
        ("FLOAT", "1e39", "a number a float can hold"),
        ("BOOLEAN", "True", "true or false"),
        ("BOOLEAN", "1", "true or false"),
        ("BINARY", "?", "a base64 string"),
        ("DATE", "2026-02-30", 'a date such as "2026-11-15"'),
        ("DATE", "+999999999-01-01", 'a date such as "2026-11-15"'),
        ("TIMESTAMP", "2026-11-15", 'a time such as "2026-11-15T10:05:00Z"'),
        ("TIMESTAMP", "2026-11-15T10:05:00.0000001Z", "a time of whole microseconds"),
        ("DECIMAL(5,2)", "1234.5", "a number that fits DECIMAL(5,2)"),
        ("DECIMAL(5,2)", "1.234", "a number that fits DECIMAL(5,2)"),
        ("DECIMAL(5,2)", "x", "a number that fits DECIMAL(5,2)"),
    ],
)
def test_a_text_that_is_not_of_its_type_is_named_with_its_column(
    spark: SparkSession, kind: str, text: str, expected: str
) -> None:
    found = decode(spark, f"a STRING, b {kind}", f"x,{text}".encode())
    assert found == ("WRONG_TYPE", f"field 'b': expected {expected}, found '{text}'")


def test_a_long_value_is_cut_in_a_reason_at_a_whole_character(spark: SparkSession) -> None:
    code, reason = decode(spark, "a INT", ("\U0001f6aa" * 50).encode())
    assert (code, reason.count("\U0001f6aa"), reason[-2]) == ("WRONG_TYPE", 40, "…")


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r"])
def test_the_end_of_a_line_behind_a_record_does_not_belong_to_it(
    spark: SparkSession, end: bytes
) -> None:
    row = {"id": 1, "price": 2.5, "name": "a\0b"}
    assert decode(spark, SCHEMA, b"1,2.5,a\0b" + end) == row
    assert decode(spark, SCHEMA, b'"1","2.5","a\0b"' + end) == row
    assert decode(spark, SCHEMA, b"1,2.5," + end) == {**row, "name": None}


@pytest.mark.parametrize(("text", "number"), [("NaN", "NaN"), ("-Infinity", "-Infinity")])
def test_numbers_that_json_lacks_are_read_and_written(
    spark: SparkSession, text: str, number: str
) -> None:
    flow = Flow("numbers")
    flow.stream("in", "a DOUBLE, b FLOAT", format="csv").to("out", format="csv")
    record = f"{text},{text}".encode()
    assert feed(MemoryFlow(spark, flow), [record]) == {"out": [record]}
    assert decode(spark, "a DOUBLE, b FLOAT", record) == {"a": number, "b": number}


def test_fields_are_found_by_the_columns_of_the_format(spark: SparkSession) -> None:
    schema = Schema(
        (
            Field("id", Primitive("bigint"), nullable=False),
            Field("name", Primitive("string"), nullable=True),
            Field("kind", Primitive("string"), nullable=False, default="new"),
            Field("price", Primitive("decimal(38,2)"), nullable=False, default=1),
            Field("day", Primitive("date"), nullable=True),
        )
    )
    form = Csv(columns=("name", "other", "id"))
    flow = Flow("columns")
    flow.stream("in", schema, format=form).to("out")
    made = feed(MemoryFlow(spark, flow), [b'a,"x,\n",1', b",,2"])
    rows = [json.loads(record) for record in made["out"]]
    absent = {"kind": "new", "price": 1, "day": None}
    assert rows == [{"id": 1, "name": "a", **absent}, {"id": 2, "name": None, **absent}]


def test_an_output_writes_its_columns_in_the_order_of_the_format(spark: SparkSession) -> None:
    flow = Flow("order")
    rows = flow.stream("in", "a INT, b STRING, c STRUCT<d: INT>")
    rows.select("a", "b", "c.d AS d").to("out", format=Csv(columns=("b", "d", "a")))
    made = feed(MemoryFlow(spark, flow), [b'{"a": 1, "b": " x", "c": {"d": 2}}', b"{}"])
    assert made["out"] == [b'" x",2,1', b",,"]


def test_a_type_without_a_form_in_csv_is_refused_when_the_flow_is_planned(
    spark: SparkSession,
) -> None:
    flow = Flow("types")
    flow.stream("in", "a INT").select("a", "array(a) AS b").to("out", format="csv")
    with pytest.raises(Exception, match="column 'b' is ARRAY<INT>, which has no form in CSV"):
        MemoryFlow(spark, flow)
