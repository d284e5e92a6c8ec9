"""The command `explain`: the documentation of error codes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from headgate.cli.app import app
from headgate.cli.host import explain


def test_a_code_is_explained_without_markdown() -> None:
    result = CliRunner().invoke(app, ["explain", "BAD_SIZE"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "BAD_SIZE  (Names, units and the command line)",
        "The text is not a size in whole bytes.",
        "what to do: Write 100, 512k, 64MiB or 1GB.",
    ]


def test_a_code_may_be_written_in_lower_case_with_hyphens() -> None:
    result = CliRunner().invoke(app, ["explain", "bad-size", "--json"])
    assert json.loads(result.stdout)["code"] == "BAD_SIZE"


def test_a_reason_of_dead_letters_is_explained_too() -> None:
    result = CliRunner().invoke(app, ["explain", "WRONG_TYPE", "--json"])
    assert json.loads(result.stdout)["topic"] == "Reasons of dead letters"


def test_without_a_code_all_are_listed() -> None:
    listed = json.loads(CliRunner().invoke(app, ["explain", "--json"]).stdout)
    assert len(listed) > 150
    assert all(entry["when"] for entry in listed)
    text = CliRunner().invoke(app, ["explain"]).stdout
    assert "JOB_NOT_FOUND" in text


def test_an_unknown_code_names_the_nearest() -> None:
    result = CliRunner().invoke(app, ["explain", "BAD_SIZES"])
    assert result.exit_code == 2
    assert "CODE_UNKNOWN" in result.stderr
    assert "hint: headgate explain BAD_SIZE\n" in result.stderr


def test_every_error_ends_with_the_command_that_explains_it() -> None:
    result = CliRunner().invoke(app, ["show", "nowhere", "--home", "/nowhere"])
    assert result.stderr.splitlines()[-1] == "more: headgate explain JOB_NOT_FOUND"


def test_a_package_without_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "_PAGE", "docs/nowhere.md")
    result = CliRunner().invoke(app, ["explain", "BAD_SIZE"])
    assert result.exit_code == 70
    assert "DOCS_MISSING" in result.stderr
