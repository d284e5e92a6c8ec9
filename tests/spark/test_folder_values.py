"""Values of every type in files of other writers: as they are, widened without loss, or refused."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from bench import Bench, bag
from folder_files import publish, write_table

from headgate import Files, Flow, Folder
from headgate.jobs.lifecycle.states import JobState

D = decimal.Decimal
UTC = dt.UTC
MOMENT = dt.datetime(2026, 11, 15, 10, 5, 7, 123456)
OLD = dt.datetime(1899, 12, 31, 23, 59, 59, 999999)

# The columns of files, with values and what a row has of them in JSON.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "tiny": (pa.int8(), [-128, 127, None]),
    "small": (pa.int16(), [-32768, 32767, None]),
    "whole": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1, 0]),
    "single": (pa.float32(), [1.5, -0.25, None]),
    "double": (pa.float64(), [1e300, -0.1, None]),
    "text": (pa.string(), ["", 'é😀\n"x"', None]),
    "day": (pa.date32(), [dt.date(1900, 1, 1), dt.date(9999, 12, 31), None]),
    "local": (pa.timestamp("us"), [MOMENT, OLD, None]),
    "moment": (pa.timestamp("us", tz="UTC"), [MOMENT, OLD, None]),
    "price": (pa.decimal128(12, 2), [D("-1234567890.12"), D("0.01"), None]),
    "long_price": (
        pa.decimal128(38, 9),
        [D("12345678901234567890123456789.123456789"), D(0), None],
    ),
    "bytes": (pa.binary(), [b"\x00\xff", b"", None]),
    "tags": (pa.list_(pa.string()), [["a", None, ""], [], None]),
    "nested": (
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int64()))]),
        [{"a": 1, "b": [2]}, {"a": None, "b": None}, None],
    ),
    "counts": (pa.map_(pa.string(), pa.int32()), [[("x", 1), ("y", None)], [], None]),
}
SCHEMA = (
    "flag BOOLEAN, tiny TINYINT, small SMALLINT, whole INT, big BIGINT NOT NULL, single FLOAT, "
    "double DOUBLE, text STRING, day DATE, local TIMESTAMP, moment TIMESTAMP, price DECIMAL(12,2), "
    "long_price DECIMAL(38,9), bytes BINARY, tags ARRAY<STRING>, "
    "nested STRUCT<a: INT, b: ARRAY<BIGINT>>, counts MAP<STRING, INT>"
)
# The same in wider types.
WIDER = (
    "tiny BIGINT, small INT, whole DOUBLE, single DOUBLE, price DECIMAL(20,4), "
    "nested STRUCT<a: BIGINT>, more STRING"
)
NARROWER = "big INT"


def table() -> pa.Table:
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})


def file(form: str) -> bytes:
    sink = pa.BufferOutputStream()
    write_table(form, table(), sink, "none")
    return bytes(sink.getvalue().to_pybytes())


def flow_of(bench: Bench, form: str, cases: dict[str, str]) -> Flow:
    flow = Flow(f"values-{form}", dead_letters=Files("letters", dir=bench.topics / "letters"))
    for name, schema in cases.items():
        source = flow.stream(Folder(bench.root / "in", name, format=form), schema)
        source.to(Files(f"{name}-out", dir=bench.topics / f"{name}-out"))
    return flow


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_values_of_other_writers_are_read_as_they_are(bench: Bench, form: str) -> None:
    publish(bench.root / "in" / f"a.{form}", file(form))
    cases = {"same": SCHEMA, "wider": WIDER, "narrower": NARROWER, "missing": "none INT NOT NULL"}
    done = bench.run(flow_of(bench, form, cases))
    assert done.state is JobState.FINISHED
    read = sorted(exact(bench, "same-out"), key=lambda row: row["big"])
    order = sorted(range(3), key=lambda at: COLUMNS["big"][1][at])
    for name in ("flag", "tiny", "small", "whole", "big", "single", "double", "text", "tags"):
        found = [float(row[name]) if isinstance(row[name], D) else row[name] for row in read]
        assert found == [COLUMNS[name][1][at] for at in order], name
    for name in ("day", "local", "moment"):
        found = [None if row[name] is None else parse(row[name]) for row in read]
        assert found == [COLUMNS[name][1][at] for at in order], name
    for name in ("price", "long_price"):
        assert [None if row[name] is None else D(str(row[name])) for row in read] == [
            COLUMNS[name][1][at] for at in order
        ], name
    assert [row["nested"] for row in read] == [COLUMNS["nested"][1][at] for at in order]
    assert [row["counts"] for row in read] == [
        None if value is None else dict(value)
        for value in (COLUMNS["counts"][1][at] for at in order)
    ]
    wider = sorted(bench.read("wider-out"), key=lambda row: (row["tiny"] is None, row["tiny"]))
    assert [row["tiny"] for row in wider] == [-128, 127, None]
    assert [row["whole"] for row in wider] == [-(2.0**31), 2.0**31 - 1, None]
    assert [row["nested"] for row in wider] == [{"a": 1}, {"a": None}, None]
    assert {row["more"] for row in wider} == {None}
    letters = {each["source"]: each for each in bench.read("letters")}
    assert {name: each["code"] for name, each in letters.items()} == {
        "narrower": "BAD_FILE",
        "missing": "BAD_FILE",
    }
    assert "column 'big' is BIGINT in the file, and INT" in letters["narrower"]["reason"]
    assert f"a.{form}" in letters["missing"]["reason"]


def exact(bench: Bench, topic: str) -> list[Any]:
    """Return the records of a topic with decimals as they are written."""
    return [
        json.loads(line, parse_float=D)
        for file in (bench.topics / topic).glob("part-*/*.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


def parse(text: str) -> Any:
    if len(text) <= 10:
        return dt.date.fromisoformat(text)
    moment = dt.datetime.fromisoformat(text)
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def test_a_null_in_a_column_without_nulls_is_a_dead_letter_of_the_row(bench: Bench) -> None:
    rows = [{"n": 1, "x": [1]}, {"n": None, "x": [2]}, {"n": 3, "x": [None]}]
    sink = pa.BufferOutputStream()
    write_table("parquet", pa.Table.from_pylist(rows), sink, "none")
    publish(bench.root / "in" / "a.parquet", sink.getvalue().to_pybytes())
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "n", "type": ["null", "long"]},
            {"name": "x", "type": {"type": "array", "items": ["null", "long"]}},
        ],
    }
    made = io.BytesIO()
    fastavro.writer(made, schema, rows)
    publish(bench.root / "avro" / "a.avro", made.getvalue())
    flow = Flow("nulls", dead_letters=Files("letters", dir=bench.topics / "letters"))
    for form, folder in (("parquet", "in"), ("avro", "avro")):
        source = flow.stream(
            Folder(bench.root / folder, format=form), "n BIGINT NOT NULL, x ARRAY<BIGINT>"
        )
        source.to(Files(f"{form}-out", dir=bench.topics / f"{form}-out"))
    bench.run(flow)
    for form in ("parquet", "avro"):
        assert bench.bag(f"{form}-out") == bag([rows[0], rows[2]])
    letters = bench.read("letters")
    assert [(each["code"], each["offset"]) for each in letters] == [("NULL_FIELD", 1)] * 2
    # It shows the row, so that somebody can tell what is wrong with it.
    assert {each["raw"] for each in letters} == {"eyJuIjpudWxsLCJ4IjpbMl19"}


def test_meta_has_the_path_and_the_place_of_a_row(bench: Bench) -> None:
    sink = pa.BufferOutputStream()
    write_table("orc", pa.table({"n": [5, 6]}), sink, "none")
    publish(bench.root / "in" / "x" / "a.orc", sink.getvalue().to_pybytes())
    flow = Flow("meta", dead_letters=Files("letters", dir=bench.topics / "letters"))
    source = flow.stream(Folder(bench.root / "in", format="orc"), "n BIGINT", meta="m")
    source.select(
        "n", "m.topic AS topic", "m.partition AS file", "m.offset AS row", "m.headers AS headers"
    ).to(Files("out", dir=bench.topics / "out"))
    bench.run(flow)
    assert bench.bag("out") == bag(
        {"n": 5 + row, "topic": "in", "file": 0, "row": row, "headers": {"path": "x/a.orc"}}
        for row in range(2)
    )
