"""Rows for the terminal: which stream they go to."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console as Terminal

from headgate import Console, Flow
from headgate.cli.parts.status import _PlainWatcher, terminal_watcher
from headgate.flow.topics import topic_from_json, topic_to_json
from headgate.jobs.startup.foreground import _on_stderr
from headgate.jobs.values import Watcher


def test_a_console_on_stderr_says_so_and_others_are_stored_as_before() -> None:
    console = Console(rows=3, stderr=True)
    assert console.describe() == "console (3 rows, on stderr)"
    assert topic_from_json(topic_to_json(console)) == console
    assert "stderr" not in topic_to_json(Console())
    assert topic_from_json({"kind": "console", "name": "console", "rows": 5}) == Console(rows=5)


def test_rows_of_a_console_on_stderr_go_there_and_no_others() -> None:
    flow = Flow("shown", dead_letters=Console(name="letters", stderr=True))
    rows = flow.stream("rows", "n BIGINT")
    rows.to(Console(name="plain"))
    rows.to(Console(name="errors", stderr=True))
    outputs = _on_stderr(flow.graph())
    assert outputs == {"errors", "letters"}
    out: list[str] = []
    err: list[str] = []
    watcher = Watcher(
        on_row=lambda _, row: out.append(row), on_stderr_row=lambda _, row: err.append(row)
    ).split(outputs)
    for output in ("plain", "errors", "letters", "other", ""):
        watcher.on_row(output, output)
    assert (out, err) == (["plain", "other", ""], ["errors", "letters"])
    # A watcher with one place for rows gets all of them.
    Watcher(on_row=lambda _, row: out.append(row)).split(outputs).on_row("errors", "all")
    assert out[-1] == "all"


@pytest.mark.parametrize("as_json", [False, True])
def test_both_streams_of_the_command_line(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal_watcher(as_json=as_json) as shown:
        watcher = shown.split({"errors"})
        watcher.on_row("plain", "1")
        watcher.on_row("errors", "2")
    printed = capsys.readouterr()
    if as_json:
        lines = [json.loads(text) for text in (printed.out, printed.err)]
        assert lines == [{"output": "plain", "row": "1"}, {"output": "errors", "row": "2"}]
    else:
        assert (printed.out, printed.err) == ("plain 1\n", "errors 2\n")
    assert _PlainWatcher(Terminal(file=io.StringIO())).watcher().on_stderr_row is not None
