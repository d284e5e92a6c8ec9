"""Commands of the command line, run in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from headgate.cli.app import app


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def run_json(*words: str) -> dict[str, Any]:
    """Return what a command prints as JSON; it must not fail."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def refused(*words: str) -> dict[str, Any]:
    """Return the error of a command as JSON; it must be the user's."""
    result = run(*words, "--json")
    assert result.exit_code == 2, result.output
    error: dict[str, Any] = json.loads(result.stderr)
    return error
