"""Formats in jobs on embedded topics and in memory: text, CSV, bytes, and formats in Python."""

from __future__ import annotations

import base64
import csv
import io
import json
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag, refused
from inline_attempts import InlineLauncher
from typer.testing import CliRunner

from headgate import Console, Files, Flow
from headgate.cli.app import app
from headgate.formats import Csv, Raw
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.values import RunOptions, Watcher
from headgate.testing import run_flow

BLOBS = [b"\x00\xff", b"", b"two\nlines", b" ", b"=", bytes(range(256)), "世界".encode()]


def lines(bench: Bench, topic: str) -> list[bytes]:
    """Return the lines of a topic's files, split at newlines alone."""
    folder = bench.topics / topic
    files = [each for each in folder.rglob("*.jsonl") if "_" not in each.parent.name]
    return sorted(line for file in files for line in file.read_bytes().split(b"\n")[:-1])


def letters(bench: Bench) -> list[tuple[str, str, bytes]]:
    """Return the code, the reason and the record of each dead letter, in order."""
    return sorted(
        (letter["code"], letter["reason"], base64.b64decode(letter["raw"]))
        for letter in bench.read("dead-letters")
    )


def test_bytes_are_base64_on_lines_and_what_is_none_is_a_dead_letter(bench: Bench) -> None:
    # The line of a record without bytes is "=".
    given = [base64.b64encode(blob) or b"=" for blob in BLOBS]
    broken = [b"no base64", b"AA=A", b"==", b"AAA"]
    bench.put("in", [*given, *broken, given[0] + b"\r", b"", b"  "])
    flow = Flow("blobs")
    blobs = flow.stream("in", "body BINARY NOT NULL", format="raw")
    blobs.to("out", format="raw")
    blobs.select("length(body) AS bytes").to("sizes")
    # A topic is read as it was written.
    again = Flow("again")
    again.stream("out", "body BINARY", format=Raw()).to("rows")
    bench.run(flow)
    bench.run(again, home=bench.root / "again")
    assert lines(bench, "out") == sorted([*given, given[0]])
    assert bench.bag("sizes") == bag({"bytes": len(blob)} for blob in [*BLOBS, BLOBS[0]])
    rows = Counter(base64.b64decode(row["body"]) for row in bench.read("rows"))
    assert rows == Counter([*BLOBS, BLOBS[0]])
    assert {(code, raw) for code, _, raw in letters(bench)} == {
        ("BAD_BASE64", record) for record in broken
    }
    assert all("not base64" in reason for _, reason, _ in letters(bench))


def test_a_null_among_bytes_is_a_dead_letter(bench: Bench) -> None:
    bench.put("in", [{"b": "AA=="}, {"b": None}])
    flow = Flow("nulls")
    flow.stream("in", "b BINARY").to("out", format="raw")
    bench.run(flow)
    assert lines(bench, "out") == [b"AA=="]
    ((code, reason, raw),) = letters(bench)
    assert (code, json.loads(raw)) == ("NULL_FIELD", {"b": None})
    assert reason == "field 'b' must not be null: it is the whole record"


def test_a_line_break_in_a_field_is_kept_or_a_dead_letter_and_never_altered(bench: Bench) -> None:
    given = [{"a": 1, "b": "x\ny"}, {"a": 2, "b": "x\ry"}, {"a": 3, "b": 'x,"y'}]
    bench.put("in", given)
    flow = Flow("breaks")
    rows = flow.stream("in", "a INT, b STRING")
    rows.to("out", format="csv")
    bench.run(flow)
    assert lines(bench, "out") == [b'2,"x\ry"', b'3,"x,""y"']
    ((code, reason, raw),) = letters(bench)
    assert (code, json.loads(raw)) == ("BAD_CSV", given[0])
    assert reason.startswith("field 'b' contains an end of a line")
    # In memory, as on a broker, a record is no line.
    out = run_flow(flow, {"in": given})["out"]
    assert out == ['1,"x\ny"', '2,"x\ry"', '3,"x,""y"']
    read = [next(csv.reader(io.StringIO(record, newline=""))) for record in out]
    assert read == [[str(row["a"]), row["b"]] for row in given]


def declare(price: str, form: Csv) -> Flow:
    flow = Flow("prices")
    rows = flow.stream("rows", f"n BIGINT NOT NULL, price {price}", format=form)
    rows.select("n", "price").to("out")
    return flow


def ask(bench: Bench, *args: str) -> Any:
    command = ["dead-letters", "prices", *args, "--home", str(bench.home), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_dead_letters_of_csv_are_replayed_as_they_were(bench: Bench) -> None:
    good = [f"{n};{n * 10}" for n in range(1, 20)]
    fractions = ['"40";40.5', "41;41.5"]
    bench.put("rows", [*good, *fractions, '7;"'])
    bench.run(declare("BIGINT", Csv(";")))
    counts = {(each["reason"], each["count"]) for each in ask(bench, "list")["counts"]}
    assert counts == {("WRONG_TYPE", 2), ("BAD_CSV", 1)}
    (broken,) = ask(bench, "list", "--reason", "BAD_CSV")["letters"]
    assert ask(bench, "show", broken["id"])["text"] == '7;"'
    done = ask(bench, "replay", "--all")
    assert (done["sent"], done["refused"]) == (3, 0)
    assert [line for line in lines(bench, "rows") if b"4" in line[:2]].count(b'"40";40.5') == 2
    bench.run(declare("DOUBLE", Csv(";")))
    wanted = [{"n": n, "price": n * 10} for n in range(1, 20)]
    assert bench.bag("out") == bag([*wanted, {"n": 40, "price": 40.5}, {"n": 41, "price": 41.5}])


def test_a_table_is_read_from_csv(bench: Bench) -> None:
    bench.put("users", ["1,Ann", '2,"Bob, jr"', ",Nobody", "1,Anna"])
    bench.put("orders", ["9\t1", "8\t2", "7\t3"])
    flow = Flow("table")
    users = flow.table("users", "id BIGINT NOT NULL, name STRING", key="id", format="csv")
    orders = flow.stream("orders", "id BIGINT, user BIGINT", format=Csv("\t"))
    joined = orders.enrich("with-user", users, on="user", into="row")
    joined.matched.select("id", "row.name AS name").to("out", format=Csv("|"), key="id")
    joined.missing.to("missing", format=Csv(columns=("user", "id")))
    bench.run(flow)
    assert lines(bench, "out") == [b"8|Bob, jr", b"9|Anna"]
    assert lines(bench, "missing") == [b"3,7"]
    assert [code for code, _, _ in letters(bench)] == ["NULL_FIELD"]


def test_text_is_read_line_by_line(bench: Bench, tmp_path: Path) -> None:
    bench.put("log", ["GET /a", '{"x": 1}', "naïve 世界", b"\xff", "", " padded "])
    flow = Flow("text")
    flow.stream("log", "line STRING", format="text").to(Files("out", dir=tmp_path / "o"))
    bench.run(flow)
    files = (tmp_path / "o").rglob("part-*/*.jsonl")
    found = [json.loads(line)["line"] for file in files for line in file.read_text().splitlines()]
    assert sorted(found) == sorted(["GET /a", '{"x": 1}', "naïve 世界", " padded "])
    assert [code for code, _, _ in letters(bench)] == ["NOT_UTF8"]


@dataclass
class Reading:
    sensor: int
    value: float


class Packed:
    """Eight bytes of a number and eight of a value."""

    form = ">qd"

    def decode(self, record: bytes) -> Reading:
        return Reading(*struct.unpack(self.form, record))

    def encode(self, row: Reading) -> bytes:
        return struct.pack(self.form, row.sensor, row.value)


class Listed:
    """Numbers with blanks between them: any number of rows."""

    def decode(self, record: bytes) -> Iterator[dict[str, Any]]:
        for number in record.split():
            yield {"n": int(number)}

    def encode(self, row: Any) -> bytes:
        if row.n == 13:
            raise ValueError("bad luck")
        return b"" if row.n == 0 else f"{row.n}\n".encode()


def custom() -> Flow:
    flow = Flow("custom")
    readings = flow.stream("readings", Reading, format=Packed(), meta="m")
    readings.where("value > 0").to("packed", format=Packed(), key="sensor")
    readings.select("sensor", "m.offset AS place").to("places")
    numbers = flow.stream("numbers", "n BIGINT NOT NULL", format=Listed())
    numbers.to("listed", format=Listed())
    return flow


def packed(sensor: int, value: float) -> bytes:
    return struct.pack(">qd", sensor, value)


def test_formats_in_python_decode_and_encode_and_their_failures_are_dead_letters() -> None:
    given: dict[str, list[Any]] = {
        "readings": [packed(1, 2.5), b"short", packed(2, -1.0)],
        "numbers": [b"1 2 13", b"", b"0", b"3 x"],
    }
    out = run_flow(custom(), given, batches=2)
    assert out["packed"] == [packed(1, 2.5)]
    assert out["places"] == [{"sensor": 1, "place": 0}, {"sensor": 2, "place": 2}]
    assert out["listed"] == [b"1\n", b"2\n", b""]
    found = {
        (letter["source"], letter["code"], base64.b64decode(letter["raw"]))
        for letter in out["dead-letters"]
        if letter["source"] != "map 'decode-readings'"
    }
    assert found == {
        # A record that is nothing but bytes is in its letter as it was.
        ("flat-map 'decode-numbers'", "FUNCTION_FAILED", b"3 x"),
        ("map 'encode-listed'", "FUNCTION_FAILED", b'{"n":13}'),
    }
    (letter,) = [each for each in out["dead-letters"] if "decode-readings" in each["source"]]
    assert "unpack requires a buffer of 16 bytes" in letter["reason"]
    assert (letter["record_topic"], letter["offset"]) == ("readings", 1)


def test_a_job_with_formats_in_python_writes_what_memory_does_and_replays(bench: Bench) -> None:
    given = [packed(n, n / 2) for n in range(30)]
    bench.put("readings", [*map(base64.b64encode, given), base64.b64encode(b"short")])
    bench.put("numbers", [base64.b64encode(b"4 5")])
    bench.run(custom())
    assert lines(bench, "packed") == sorted(map(base64.b64encode, given[1:]))
    assert lines(bench, "listed") == sorted(map(base64.b64encode, [b"4\n", b"5\n"]))
    command = ["dead-letters", "custom", "replay", "--all", "--home", str(bench.home), "--json"]
    done = json.loads(CliRunner().invoke(app, command).stdout)
    assert (done["sent"], done["refused"]) == (1, 0), done


def test_formats_in_python_are_refused_where_they_cannot_work() -> None:
    flow = Flow("refused")
    with refused("BAD_FORMAT"):
        flow.table("t", Reading, key="sensor", format=Packed())  # type: ignore[arg-type]
    with refused("BAD_FORMAT"):
        flow.stream("s", Reading, event_time="sensor", format=Packed())
    with refused("BAD_FORMAT"):
        flow.stream("s", Reading, format=Packed)  # type: ignore[arg-type]
    rows = flow.stream("s", "sensor BIGINT, value DOUBLE, other STRING", format=Packed())
    with refused("BAD_OUTPUT"):
        rows.to("o", format=Packed(), key="other")
    with refused("UNKNOWN_COLUMN"):
        rows.select("sensor").to("o", format=Packed())
    rows.to("o", format=Packed(), key="sensor")


def test_a_result_of_decode_that_is_no_row_is_named() -> None:
    class Bad:
        def decode(self, record: bytes) -> Any:
            return {b"none": None, b"text": "a", b"wrong": {"n": "a"}, b"null": {"n": None}}[record]

    flow = Flow("bad")
    flow.stream("in", "n BIGINT NOT NULL", format=Bad()).to("out")
    given = [b"none", b"text", b"wrong", b"null", b"else"]
    found = [letter["reason"] for letter in run_flow(flow, {"in": given})["dead-letters"]]
    wanted = ["got NoneType", "got str", "'n' must be int64", "'n' must not be None", "KeyError"]
    for reason, words in zip(found, wanted, strict=True):
        assert words in reason


@dataclass
class Order:
    id: int
    price: Decimal
    day: date
    body: bytes
    name: str | None
    done: bool


def test_records_in_memory_are_dicts_dataclasses_or_those_of_the_format() -> None:
    flow = Flow("memory")
    orders = flow.stream("orders", Order, format=Csv(";", nulls="-"))
    orders.to("same", format=Csv(";", nulls="-"))
    flow.stream("text", "line STRING", format="text").to("json")
    flow.stream("raw", "b BINARY", format="raw").to("bytes", format="raw")
    order = Order(1, Decimal("2.5"), date(2026, 1, 2), b"\xff", "-", True)
    given: dict[str, list[Any]] = {
        "orders": [order, vars(order) | {"name": None}, '3;1;2026-01-02;"";a;false'],
        "text": ["a line", {"line": "b"}, b"c"],
        "raw": [b"\x00", {"b": b"\x01"}, "text"],
    }
    out = run_flow(flow, given)
    price = "2.500000000000000000"
    assert out["same"] == [
        f'1;{price};2026-01-02;/w==;"-";true',
        f"1;{price};2026-01-02;/w==;-;true",
        "3;1.000000000000000000;2026-01-02;;a;false",
    ]
    assert out["json"] == [{"line": "a line"}, {"line": "b"}, {"line": "c"}]
    assert out["bytes"] == [b"\x00", b"\x01", b"text"]
    with refused("INPUT_UNKNOWN"):
        run_flow(flow, {"raw": [{"c": b"\x01"}]})


def test_a_preview_has_text_and_bytes() -> None:
    flow = Flow("preview")
    rows = flow.stream("in", "a INT, b BINARY", format="csv")
    rows.to("csv", format="csv")
    rows.to("raw", format=Raw(column="b"))
    shown = flow.preview({"in": [{"a": 1, "b": b"\xff"}, b"2,AA=="]})
    assert shown["csv"] == ["1,/w==", "2,AA=="]
    assert shown["raw"] == [b"\xff", b"\x00"]
    assert "\\xff" in repr(shown)
    assert "\\xff" in shown._repr_html_()


@pytest.mark.parametrize(
    ("form", "columns", "row"),
    [
        ("csv", ("'a,b' AS b", "1 AS c"), '"a,b",1'),
        ("text", ("'x' AS b",), "x"),
        ("raw", ("b",), "\0f\\xff"),
    ],
)
def test_rows_are_printed_as_text(bench: Bench, form: str, columns: Any, row: str) -> None:
    bench.put("in", [{"b": "AGb/"}])
    flow = Flow("shown")
    flow.stream("in", "b BINARY").select(*columns).to(Console(), format=form)
    printed: list[str] = []
    options = RunOptions(
        on=f"files:{bench.topics}", home=bench.home, until_caught_up=True, restart="none"
    )
    watcher = Watcher(on_row=lambda _, text: printed.append(text))
    run_job(str(bench.flow_file(flow)), options, watcher, launcher=InlineLauncher())
    assert printed == [row]
