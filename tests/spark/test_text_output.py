"""Outputs of text: a record is the text of one column, as it is, on one line."""

from __future__ import annotations

import pytest
from bench import Bench
from inline_attempts import InlineLauncher

from headgate import Console, Flow, HeadgateError
from headgate.jobs.startup.foreground import run_job
from headgate.jobs.topics.listing import list_topics, tail_topic
from headgate.jobs.values import JobSnapshot, RunOptions, Watcher

TEXTS = ['plain, "quoted" {not json}', "Grüße, 世界 🚪", "two\nlines\r\nand a third", "[1, 2", "7"]
SCHEMA = "id BIGINT NOT NULL, text STRING, inner STRUCT<text: STRING>"


def raw(bench: Bench, topic: str) -> list[bytes]:
    """Return the lines of a topic's files, split at newlines alone."""
    folder = bench.topics / topic
    files = [each for each in folder.rglob("*.jsonl") if "_" not in each.parent.name]
    return sorted(line for file in files for line in file.read_bytes().split(b"\n")[:-1])


def one_line(text: str) -> bytes:
    return text.replace("\n", " ").replace("\r", " ").encode()


def run(bench: Bench, flow: Flow) -> tuple[JobSnapshot, list[str]]:
    """Run a job until it has caught up; return how it ended and the rows that were shown."""
    shown: list[str] = []
    watcher = Watcher(on_row=lambda _, row: shown.append(row))
    options = RunOptions(
        on=f"files:{bench.topics}", home=bench.home, until_caught_up=True, restart="none"
    )
    file = str(bench.flow_file(flow))
    return run_job(file, options, watcher, launcher=InlineLauncher()), shown


def text_flow() -> Flow:
    flow = Flow("texts")
    rows = flow.stream("rows", SCHEMA)
    rows.select("text").to("picked", format="text")
    rows.select("inner.text").to("nested", format="text")
    rows.select("format_string('%d: %s', id, text) AS line").to("made", format="text")
    rows.select("text").to(Console(rows=100), format="text")
    return flow


def test_a_text_is_written_as_it_is_and_its_ends_of_lines_become_blanks(bench: Bench) -> None:
    bench.put(
        "rows",
        [{"id": i, "text": text, "inner": {"text": text}} for i, text in enumerate(TEXTS)],
    )
    ended, shown = run(bench, text_flow())
    wanted = sorted(map(one_line, TEXTS))
    assert raw(bench, "picked") == raw(bench, "nested") == wanted
    assert raw(bench, "made") == sorted(b"%d: %s" % (i, one_line(t)) for i, t in enumerate(TEXTS))
    assert sorted(row.encode() for row in shown) == wanted
    assert ended.totals.outputs["picked"] == len(TEXTS)
    on = f"files:{bench.topics}"
    assert sorted(tail_topic(on, "picked", last=10)) == wanted
    counted = {each.name: each.records for each in list_topics(on, count=True)}
    assert counted["picked"] == counted["made"] == len(TEXTS)


def test_a_null_is_an_empty_line_which_readers_pass_over(bench: Bench) -> None:
    bench.put("rows", [{"id": 1, "text": None, "inner": None}, {"id": 2, "text": "a"}])
    _, shown = run(bench, text_flow())
    assert sorted(shown) == ["", "a"]
    assert raw(bench, "picked") == [b"", b"a"]
    assert raw(bench, "nested") == [b"", b""]
    assert tail_topic(f"files:{bench.topics}", "picked", last=10) == [b"a"]


@pytest.mark.parametrize("expression", ["id + 1 AS line", "array(text) AS line"])
def test_text_of_a_column_that_is_no_string_is_refused(bench: Bench, expression: str) -> None:
    flow = Flow("numbers")
    flow.stream("rows", SCHEMA).select(expression).to("lines", format="text")
    with pytest.raises(HeadgateError) as caught:
        run(bench, flow)
    assert caught.value.code == "BAD_OUTPUT"
    assert "'line'" in caught.value.message
    assert caught.value.hint
