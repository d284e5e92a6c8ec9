"""No function is longer than a screen."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "headgate"
LONGEST = 60


def long_functions() -> set[str]:
    """Return the functions above the limit, as file and name; docstrings count."""
    return {
        f"{file.relative_to(ROOT).as_posix()}:{node.name}"
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= LONGEST
    }


def test_no_function_is_longer_than_60_lines() -> None:
    assert long_functions() == set()
