"""Formats on a real broker: records are messages as they are, with line breaks and any bytes."""

from __future__ import annotations

import base64
import csv
import io
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench import Bench
from kafka_broker import KafkaBroker
from typer.testing import CliRunner

from headgate import Flow, Kafka
from headgate.cli.app import app
from headgate.formats import Csv, Raw
from headgate.jobs.folder_home import FolderHome


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


class Zipped:
    """A number, compressed; the version of a format is a value that is stored with it."""

    def __init__(self, level: int) -> None:
        self.level = level

    def decode(self, record: bytes) -> dict[str, Any]:
        return {"n": int(zlib.decompress(record))}

    def encode(self, row: Any) -> bytes:
        return zlib.compress(str(row.n).encode(), self.level)


def flow_on(kafka: KafkaBroker, topics: dict[str, str]) -> Flow:
    def bound(name: str) -> Kafka:
        topics.setdefault(name, kafka.make_topic())
        return Kafka(topics[name], servers=kafka.address)

    flow = Flow("formats", dead_letters=bound("letters"))
    rows = flow.stream(bound("csv-in"), "id BIGINT NOT NULL, note STRING", format="csv")
    rows.to(bound("csv-out"), format=Csv(";", nulls="-"), key="id")
    blobs = flow.stream(bound("raw-in"), "body BINARY NOT NULL", format="raw", meta="m")
    blobs.select("body", "hex(m.key) AS k").to(bound("raw-out"), format=Raw("body"), key="k")
    zipped = flow.stream(bound("zip-in"), "n BIGINT NOT NULL", format=Zipped(9))
    zipped.where("n <> 3").to(bound("zip-out"), format=Zipped(1), key="n")
    users = flow.table(bound("users"), "id BIGINT NOT NULL, name STRING", key="id", format="csv")
    rows.enrich("with-user", users, on="id", into="user").matched.select("id", "user.name").to(
        bound("named"), format="csv"
    )
    return flow


def test_records_on_kafka_are_as_they_are(kafka: KafkaBroker, bench: Bench) -> None:
    topics: dict[str, str] = {}
    flow = flow_on(kafka, topics)
    kafka.send(topics["csv-in"], [b'1,"two\nlines, ""x"""', b"2,", b"3,a\nb", b"", None])
    for blob in (b"\x00\xff\n", b"", b"=", b"AA=="):
        kafka.send(topics["raw-in"], [blob], key=b"\x01" + blob[:1])
    kafka.send(topics["zip-in"], [zlib.compress(b"%d" % n) for n in range(5)])
    kafka.send(topics["zip-in"], [b"not zlib"], key=b"k\xff")
    kafka.send(topics["users"], [b"1,Ann"], key=b"1")
    kafka.send(topics["users"], [b"2,Bob"], key=b"2")
    # A record without a value ends the row of its key, in any format.
    kafka.send(topics["users"], [None], key=b"2")
    bench.run(flow)
    out = {m.key(): m.value() for m in kafka.read(topics["csv-out"])}
    assert out == {b"1": b'1;"two\nlines, ""x"""', b"2": b"2;-"}
    (row,) = csv.reader(io.StringIO((out[b"1"] or b"").decode(), newline=""), delimiter=";")
    assert row == ["1", 'two\nlines, "x"']
    assert kafka.values(topics["named"]) == [b"1,Ann"]
    blobs = Counter((m.key(), m.value()) for m in kafka.read(topics["raw-out"]))
    assert blobs == {
        (b"0100", b"\x00\xff\n"): 1,
        (b"01", b""): 1,
        (b"013D", b"="): 1,
        (b"0141", b"AA=="): 1,
    }
    zipped = {m.key(): m.value() for m in kafka.read(topics["zip-out"])}
    assert zipped == {b"%d" % n: zlib.compress(b"%d" % n, 1) for n in (0, 1, 2, 4)}
    found = [json.loads(value or b"") for value in kafka.values(topics["letters"])]
    raws = [None if each["raw"] is None else base64.b64decode(each["raw"]) for each in found]
    assert Counter(zip((each["code"] for each in found), raws, strict=True)) == {
        ("BAD_CSV", b"3,a\nb"): 1,
        ("BAD_CSV", b""): 1,
        ("BAD_CSV", None): 1,
        ("FUNCTION_FAILED", b"not zlib"): 1,
    }
    _replayed(kafka, bench, topics)
    _shown(kafka, bench, topics)


def _replayed(kafka: KafkaBroker, bench: Bench, topics: dict[str, str]) -> None:
    """The record of a format in Python goes back as it was, with its key."""
    command = ["replay", "--reason", "FUNCTION_FAILED", "--home", str(bench.home), "--json"]
    result = CliRunner().invoke(app, ["dead-letters", "formats", *command])
    assert json.loads(result.stdout)["sent"] == 1, result.output
    last = [(m.key(), m.value()) for m in kafka.read(topics["zip-in"])][-1]
    assert last == (b"k\xff", b"not zlib")


def _shown(kafka: KafkaBroker, bench: Bench, topics: dict[str, str]) -> None:
    """Rows are shown by the format of their output; on a broker, bytes are not base64."""
    home = FolderHome(bench.home)
    shown = {record.value for record in home.output_records("formats", topics["csv-out"])}
    assert shown == {
        json.dumps({"id": "1", "note": 'two\nlines, "x"'}),
        json.dumps({"id": "2", "note": None}),
    }
    values = {record.value for record in home.output_records("formats", topics["raw-out"])}
    assert values == {"\x00\\xff\n", "", "=", "AA=="}
    peek = ["topics", "peek", topics["csv-out"], "--on", kafka.url, "--format", "csv"]
    result = CliRunner().invoke(app, [*peek, "--option", "delimiter=;", "--option", "nulls=-"])
    assert sorted(result.stdout.splitlines()) == ['["1", "two\\nlines, \\"x\\""]', '["2", null]']
