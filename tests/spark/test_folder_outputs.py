"""Folders as outputs: files that independent readers read, each row exactly once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag

from headgate import Flow, Folder


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def copying(folder: Folder, schema: str = "id BIGINT, name STRING") -> Flow:
    flow = Flow("copy")
    flow.stream("rows", schema).to(folder)
    return flow


def visible(folder: Path) -> list[Path]:
    """Return the files that a reader of the folder sees."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    )


def hidden(folder: Path) -> list[str]:
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "_headgate" in f.parts)


def test_rows_are_visible_once_the_job_has_ended(bench: Bench) -> None:
    rows = [{"id": i, "name": f"n{i}"} for i in range(1000)]
    out = bench.root / "out"
    bench.put("rows", rows[:500])
    flow = copying(Folder(out))
    bench.run(flow)
    lines = [json.loads(line) for file in visible(out) for line in file.read_text().splitlines()]
    assert bag(lines) == bag(rows[:500])
    bench.put("rows", rows[500:])
    bench.run(flow)
    lines = [json.loads(line) for file in visible(out) for line in file.read_text().splitlines()]
    assert bag(lines) == bag(rows)
    print(visible(out), hidden(out))
