"""Formats as values: what they refuse, the list of them, and records as people see them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audited_job import make_job
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from headgate import Flow, HeadgateError, Kafka
from headgate.cli.app import app
from headgate.connectors.files.folder.topic import TopicFolder
from headgate.connectors.files.log import FilesLog
from headgate.connectors.logs import bind
from headgate.engine.plan.plan import plan_flow
from headgate.flow.formats.csv_records import BadCsvError, join_fields, split_fields
from headgate.flow.formats.format import KINDS
from headgate.flow.graph.graph import Graph
from headgate.formats import Csv, Json, Raw, Text
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.topics.formats import list_formats, parse_format
from headgate.jobs.topics.setup import _schemas


def refused(code: str, act: Callable[[], Any], *words: str) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        act()
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimiter": ""}, "delimiter must be"),
        ({"delimiter": ",,"}, "delimiter must be"),
        ({"delimiter": "\n"}, "delimiter must be"),
        ({"delimiter": "-"}, "delimiter must be"),
        ({"delimiter": "1"}, "delimiter must be"),
        ({"delimiter": "="}, "delimiter must be"),
        ({"delimiter": "\u00a7"}, "delimiter must be"),
        ({"quote": "a"}, "quote must be"),
        ({"delimiter": '"'}, "must differ"),
        ({"nulls": "a,b"}, "nulls must be"),
        ({"nulls": "0"}, "nulls must be"),
        ({"nulls": "-1"}, "nulls must be"),
        ({"nulls": "true"}, "nulls must be"),
        ({"nulls": "NaN"}, "nulls must be"),
        ({"columns": ("a", "A")}, "columns must be"),
        ({"columns": "ab"}, "columns must be"),
    ],
)
def test_csv_that_could_be_misread_is_refused(options: dict[str, Any], words: str) -> None:
    refused("BAD_FORMAT", lambda: Csv(**options), words)


def stream(schema: str, form: Any) -> Any:
    return Flow("f").stream("in", schema, format=form)


def test_a_source_is_refused_whose_format_cannot_read_its_columns() -> None:
    refused("BAD_FORMAT", lambda: stream("a ARRAY<INT>", "csv"), "'a' is ARRAY<INT>")
    refused("BAD_FORMAT", lambda: stream("a INT NOT NULL, b INT", Csv(columns=("b",))), "'a'")
    refused("BAD_FORMAT", lambda: stream("a STRING", "raw"), "exactly one binary column")
    refused("BAD_FORMAT", lambda: stream("a BINARY, b BINARY", "raw"), "exactly one binary column")
    refused("BAD_FORMAT", lambda: stream("a INT", "text"), "exactly one string column")
    refused("BAD_FORMAT", lambda: stream("a INT", "cvs"), "json, text, csv, raw")
    refused("BAD_FORMAT", lambda: stream("a INT", 5), "got 5")
    table = Flow("f").table
    refused("BAD_FORMAT", lambda: table("t", "a STRING", key="a", format="text"), "needs a key")
    refused("BAD_FORMAT", lambda: table("t", "a BINARY", key="a", format="raw"), "needs a key")
    stream("a INT, b STRING", Csv(columns=("b", "c")))
    Flow("f").table("t", "a INT NOT NULL, b DATE", key="a", format="csv")


def test_an_output_is_refused_whose_format_cannot_write_its_rows() -> None:
    rows = stream("a INT, s STRING, p STRUCT<q: INT>, b BINARY", "json")
    refused("BAD_OUTPUT", lambda: rows.to("x", format="csv"), "'p' is STRUCT")
    refused("BAD_OUTPUT", lambda: rows.select("a").to("x", format="csv"), "blank record")
    one = rows.select("a", "s")
    refused("BAD_OUTPUT", lambda: one.to("x", format=Csv(columns=("a",))), "those of the rows")
    refused("BAD_OUTPUT", lambda: one.to("x", format=Csv(columns=("a", "s", "t"))))
    refused("BAD_OUTPUT", lambda: rows.to("x", format="raw"), "exactly one binary column")
    refused("BAD_OUTPUT", lambda: rows.to("x", format=Raw(column="s")), "'s' is STRING")
    refused("UNKNOWN_COLUMN", lambda: rows.to("x", format=Raw(column="z")))
    rows.select("a").to("x", format=Csv(nulls="NULL"))
    rows.select("p.q", "a").to("y", format=Csv(columns=("a", "q")))
    rows.to("z", format=Raw(column="b"), key="a")


def test_a_flow_with_formats_survives_its_json() -> None:
    flow = Flow("f")
    rows = flow.stream("in", "a INT, b STRING", format=Csv(";", columns=("b", "a")))
    rows.to("out", format=Csv("\t", "'", "-"))
    rows.select("CAST(b AS BINARY) AS c").to("raw", format=Raw())
    rows.select("b").to("text", format=Text())
    rows.to("json", format=Json())
    assert Graph.from_json(flow.graph().to_json()) == flow.graph()


def test_only_topics_of_lines_have_binary_records_as_base64() -> None:
    flow = Flow("f")
    rows = flow.stream("in", "a BINARY", format="raw")
    rows.to("files", format="raw")
    rows.to(Kafka("broker", servers="k:9092"), format="raw")
    rows.to("json")
    graph = bind(flow.graph(), FilesLog(Path("topics")))
    spec = plan_flow(graph, history={}, max_record=1).spec
    (source,) = spec["sources"]
    assert source["lines"] == "base64"
    assert [step["lines"] for step in source["route"]] == ["base64", "none", "text"]
    held = plan_flow(graph, history={}, max_record=1, in_memory=True).spec["sources"][0]
    assert {held["lines"], *(step["lines"] for step in held["route"])} == {"none"}


def test_only_topics_of_json_get_a_json_schema() -> None:
    flow = Flow("f")
    rows = flow.stream("in", "a INT, b INT", format="csv")
    rows.to("csv", format="csv")
    rows.to("json")
    schemas = {topic.name: schema.names for topic, schema in _schemas(flow.graph()).items()}
    assert set(schemas) == {"json", "dead-letters"}
    assert schemas["json"] == ("a", "b")


@given(st.lists(st.none() | st.text(max_size=5), min_size=1, max_size=4), st.booleans())
def test_fields_in_python_survive_a_record(values: list[str | None], quoted: bool) -> None:
    form = Csv(";", "'", "-") if quoted else Csv()
    if form.nulls or len(values) > 1 or values != [None]:
        assert split_fields(form, join_fields(form, values)) == values


@pytest.mark.parametrize("record", ['"a', 'a"b', '"a"b,c', "a\nb", "a\r,b"])
def test_a_text_that_is_not_csv_has_a_reason(record: str) -> None:
    with pytest.raises(BadCsvError, match="field 1: "):
        split_fields(Csv(), record)


def run(*args: str) -> Any:
    return CliRunner().invoke(app, list(args))


def test_the_list_of_formats_is_that_of_their_classes() -> None:
    listed = {form.name: form for form in list_formats()}
    assert list(listed) == list(KINDS)
    assert all(form.description and (form.reads or form.writes) for form in listed.values())
    assert all(option.description for form in listed.values() for option in form.options)
    assert [(each.name, each.default) for each in listed["csv"].options] == [
        ("delimiter", "','"),
        ("quote", "'\"'"),
        ("nulls", "''"),
        ("columns", ""),
    ]
    assert (listed["raw"].on_brokers, listed["raw"].embedded) == ("bytes", "base64")
    result = run("formats")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in KINDS)
    shown = json.loads(run("formats", "--json").stdout)
    assert [form["name"] for form in shown] == list(KINDS)


def test_options_of_a_format_are_read_from_text() -> None:
    parsed = parse_format("csv", ["delimiter=\\t", "columns=a, b", "nulls="])
    assert parsed == Csv("\t", columns=("a", "b"))
    assert parse_format("json") == Json()
    refused("BAD_FORMAT", lambda: parse_format("csv", ["delimeter=;"]), "delimeter")
    refused("BAD_FORMAT", lambda: parse_format("csv", ["delimiter"]), "delimiter")
    refused("BAD_FORMAT", lambda: parse_format("json", ["a=b"]), "none")
    refused("BAD_FORMAT", lambda: parse_format("xml"))


def test_peek_shows_decoded_records_and_reasons(tmp_path: Path) -> None:
    for name, lines in {
        "csv": b'1,"a ""b"""\n2,\n3\n4,\xff\n',
        "raw": base64.b64encode(b"\x00\xffok") + b"\n=\nno base64\n",
        "json": b'{"a": 1}\n',
    }.items():
        folder = TopicFolder(tmp_path / name)
        folder.create(1)
        folder.publish(lines)

    def peek(*args: str) -> tuple[list[str], str]:
        result = run("topics", "peek", *args, "--on", f"files:{tmp_path}")
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines(), result.stderr

    named, problems = peek("csv", "--format", "csv", "--option", "columns=id,name")
    assert named == [
        '{"id": "1", "name": "a \\"b\\""}',
        '{"id": "2", "name": null}',
        "3",
        "4,\\xff",
    ]
    assert "expected 2 fields, found 1" in problems
    assert "not UTF-8 at byte 2" in problems
    assert peek("csv", "--format", "csv", "-n", "4")[0][1] == '["2", null]'
    shown, problems = peek("raw", "--format", "raw")
    assert (len(shown), shown[0], shown[2]) == (3, "\\x00\\xffok", "no base64")
    assert "the line is not base64" in problems
    assert peek("json")[0] == ['{"a": 1}']
    found = json.loads(
        run(
            "topics", "peek", "raw", "--format", "raw", "--on", f"files:{tmp_path}", "--json"
        ).stdout
    )
    assert [sorted(record) for record in found] == [["text"], ["text"], ["problem", "text"]]


def test_rows_of_a_job_are_shown_by_the_format_of_their_output(tmp_path: Path) -> None:
    flow = Flow("shop")
    rows = flow.stream("in", "id BIGINT, name STRING, body BINARY")
    rows.select("id", "name").to("csv", format=Csv(";", nulls="-"))
    rows.to("raw", format=Raw(column="body"))
    graph = bind(flow.graph(), FilesLog(tmp_path / "topics"))
    make_job(tmp_path / "home", graph, {})
    for name, lines in {
        "csv": b'1;"a;b"\n2;-\n3\n',
        "raw": base64.b64encode(b"\xff1") + b"\n?\n",
    }.items():
        folder = TopicFolder(tmp_path / "topics" / name)
        folder.create(1)
        folder.publish(lines)
    home = FolderHome(tmp_path / "home")
    found = home.output_records("shop", "csv")
    assert [(record.value, record.problem) for record in found] == [
        ('{"id": "1", "name": "a;b"}', ""),
        ('{"id": "2", "name": null}', ""),
        ("3", "expected 2 fields, found 1"),
    ]
    first, second = home.output_records("shop", "raw")
    assert (first.value, first.problem) == ("\\xff1", "")
    assert second.value == "?"
    assert second.problem.startswith("the line is not base64")
