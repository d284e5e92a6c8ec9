"""A flow is found in a user's file, or the user is told what is wrong with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from headgate import Flow, HeadgateError
from headgate.jobs.flow_file import load_flow

FLOW = """
from dataclasses import dataclass
from headgate import Flow

@dataclass
class Row:
    n: int

{name} = Flow("numbers")
{name}.stream("in", Row).to("out")
"""


def write(tmp_path: Path, text: str, name: str = "my_flow.py") -> str:
    file = tmp_path / name
    file.write_text(text)
    return str(file)


def refusal(reference: str) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        load_flow(reference)
    assert caught.value.hint
    return caught.value


def test_a_flow_is_found_by_its_file(tmp_path: Path) -> None:
    loaded = load_flow(write(tmp_path, FLOW.format(name="flow")))
    assert loaded.graph.name == "numbers"
    assert loaded.folder == tmp_path.resolve()


def test_a_flow_that_was_changed_within_a_second_is_the_changed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("numbers", "letters"):
        file = write(tmp_path, FLOW.format(name="flow").replace("numbers", name))
        os.utime(file, (1_800_000_000, 1_800_000_000))
        assert load_flow(file).graph.name == name
    assert [path.name for path in tmp_path.iterdir()] == ["my_flow.py"]


def test_a_folder_stands_for_the_flow_in_it(tmp_path: Path) -> None:
    write(tmp_path, FLOW.format(name="flow"), "flow.py")
    assert load_flow(str(tmp_path)).graph.name == "numbers"


def test_the_only_flow_of_a_file_may_have_any_name(tmp_path: Path) -> None:
    assert load_flow(write(tmp_path, FLOW.format(name="mine"))).graph.name == "numbers"


def test_one_of_several_flows_is_chosen_by_name(tmp_path: Path) -> None:
    other = 'b = Flow("letters")\nb.stream("in", Row).to("out")\n'
    file = write(tmp_path, FLOW.format(name="a") + other)
    assert load_flow(f"{file}:b").graph.name == "letters"
    assert "it has a, b" in refusal(file).message
    assert "called 'c'" in refusal(f"{file}:c").message
    assert refusal(f"{file}:c").code == "FLOW_NOT_FOUND"


def test_the_one_called_flow_is_taken_where_there_are_several(tmp_path: Path) -> None:
    other = 'b = Flow("letters")\nb.stream("in", Row).to("out")\n'
    assert load_flow(write(tmp_path, FLOW.format(name="flow") + other)).graph.name == "numbers"


def test_a_flows_json_is_a_flow(tmp_path: Path) -> None:
    flow = Flow("numbers")
    flow.stream("in", "n BIGINT").to("out")
    file = write(tmp_path, flow.graph().to_json(), "flow.json")
    assert load_flow(file).graph == flow.graph()


def test_a_module_beside_the_flow_can_be_imported(tmp_path: Path) -> None:
    write(tmp_path, "TOPIC = 'beside'", "beside_the_flow.py")
    text = "from beside_the_flow import TOPIC\n" + FLOW.format(name="flow").replace('"in"', "TOPIC")
    assert [source.id for source in load_flow(write(tmp_path, text)).graph.streams()] == ["beside"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (line 1)"),
        ("\n\nimport no_such_module", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("\n\nundefined", "(line 3)"),
    ],
)
def test_a_file_that_fails_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    error = refusal(write(tmp_path, text))
    assert error.code == "FLOW_BROKEN"
    assert told in error.message
    assert error.exit_code == 2


def test_what_the_flow_itself_refuses_comes_through(tmp_path: Path) -> None:
    assert (
        refusal(write(tmp_path, 'from headgate import Flow\nFlow("Bad Name")')).code == "BAD_NAME"
    )


def test_a_flow_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    text = 'from headgate import Flow\nflow = Flow("x")\nflow.stream("in", "n BIGINT")\n'
    assert refusal(write(tmp_path, text)).exit_code == 2


@pytest.mark.parametrize("reference", ["nowhere.py", "nowhere.py:flow", "nowhere", "nowhere.json"])
def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(reference).code == "FLOW_NOT_FOUND"


def test_a_file_without_a_flow_is_told(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "x = 1"))
    assert (error.code, "it has none" in error.message) == ("FLOW_NOT_FOUND", True)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00"])
def test_json_that_is_no_flow_is_refused_and_no_traceback(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "flow.json"
    file.write_bytes(content)
    assert refusal(str(file)).exit_code == 2


def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    assert refusal(write(tmp_path, "x", "flow.txt")).code == "FLOW_NOT_FOUND"
