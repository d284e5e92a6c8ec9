"""Functions of installed packages: stored by name, and refused if their source has changed."""

from __future__ import annotations

import base64
import importlib
import io
import json
import pickle
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pytest

from headgate import Flow, Graph, HeadgateError
from headgate.engine.plan.plan import plan_flow
from headgate.flow.operators.nodes import Call, Process
from headgate.functions import worker
from headgate.functions.installed import Installed, find_digest
from headgate.functions.stored import (
    Callback,
    ProcessCallback,
    StoredFunction,
    load,
    present_python,
    store,
)

SOURCE = """
from dataclasses import dataclass
from headgate import KeyedProcess, Value

MARK = 1

@dataclass
class Row:
    id: int

def clean(row: Row) -> Row:
    return Row(row.id + MARK)

class Tools:
    @staticmethod
    def twice(row: Row) -> Row:
        return Row(2 * row.id)

def made(number):
    def inner(row: Row) -> Row:
        return Row(number)
    return inner

class Count(KeyedProcess[Row, Row]):
    seen: Value[int]

    def __init__(self, step):
        self.step = step

    def on_event(self, row, ctx):
        ctx.emit(Row(self.step))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file of an installed module, `toolbox.parts.rows`."""
    site = tmp_path / "site-packages"
    folder = site / "toolbox" / "parts"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    file = folder / "rows.py"
    file.write_text(SOURCE)
    monkeypatch.syspath_prepend(site)
    yield file
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolbox"]:
        del sys.modules[name]
    importlib.invalidate_caches()


def graph(function: Any) -> Graph:
    flow = Flow("installed")
    flow.stream("in", "id BIGINT").map("f", function).to("out")
    return flow.graph()


def stored(of: Graph) -> StoredFunction:
    node = of.node("f")
    assert isinstance(node, Call | Process)
    return node.function


def loaded(of: StoredFunction) -> Any:
    return load(base64.b64decode(of.code))


@pytest.mark.parametrize(("name", "result"), [("clean", 6), ("Tools.twice", 10)])
def test_a_function_is_stored_by_its_name(package: Path, name: str, result: int) -> None:
    rows = importlib.import_module("toolbox.parts.rows")
    function = rows.clean if name == "clean" else rows.Tools.twice
    of = stored(graph(function))
    assert of.name == f"toolbox.parts.rows:{name}"
    assert of.source == find_digest("toolbox.parts.rows")
    _forget()
    content = pickle.loads(zlib.decompress(base64.b64decode(of.code)))
    assert replace(content, callback=b"") == Installed("toolbox.parts.rows", name, of.source)
    assert "toolbox" not in sys.modules
    again = loaded(of)
    assert isinstance(again, Callback)
    row = sys.modules["toolbox.parts.rows"].Row
    assert again.function(row(5)) == row(result)
    assert package.exists()


def test_an_object_of_a_process_keeps_its_attributes(package: Path) -> None:
    rows = importlib.import_module("toolbox.parts.rows")
    flow = Flow("installed")
    stream = flow.stream("in", "id BIGINT")
    stream.key_by("id").process("f", rows.Count(7)).out.to("out")
    of = stored(flow.graph())
    _forget()
    again = loaded(of)
    assert isinstance(again, ProcessCallback)
    assert cast("Any", again.function).step == 7
    package.write_text(SOURCE + "# changed\n")
    _forget()
    with pytest.raises(HeadgateError) as caught:
        loaded(of)
    assert caught.value.code == "FUNCTION_CHANGED"
    assert "toolbox" not in sys.modules


@pytest.mark.parametrize("kind", ["nested", "lambda", "own", "standard"])
def test_other_functions_are_stored_as_before(
    kind: str, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = importlib.import_module("toolbox.parts.rows")
    (tmp_path / "beside_flow.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("beside_flow")
    functions = {
        "nested": rows.made(3),
        "lambda": lambda row: row,
        "own": own.clean,
        "standard": json.dumps,
    }
    of = store(Callback(functions[kind]), StoredFunction("m:f", "d"), what="cannot add")
    assert of.source == ""
    package.write_text("raise AssertionError('it is not compared')\n")
    assert callable(loaded(of).function)
    if kind == "own":
        del sys.modules["beside_flow"]
        (tmp_path / "beside_flow.py").unlink()
        assert callable(loaded(of).function)


def test_a_changed_module_is_refused_before_it_is_imported(package: Path, tmp_path: Path) -> None:
    of = graph(importlib.import_module("toolbox.parts.rows").clean)
    assert plan_flow(of, history={}, max_record=1)
    trace = tmp_path / "imported"
    package.write_text(f"open({str(trace)!r}, 'w')\n{SOURCE}")
    _forget()
    with pytest.raises(HeadgateError, match="cannot plan map 'f': the file of module") as caught:
        plan_flow(of, history={}, max_record=1)
    assert caught.value.code == "FUNCTION_CHANGED"
    assert "start the job from its flow's file" in caught.value.hint
    code, message = _worker_refusal(stored(of))
    assert code == "FUNCTION_CHANGED"
    assert message.startswith("map 'f': cannot load toolbox.parts.rows:clean: the file of module")
    assert not trace.exists()
    # The flow's file stores it again.
    new = graph(importlib.import_module("toolbox.parts.rows").clean)
    assert new != of
    assert plan_flow(new, history={}, max_record=1)


def test_a_removed_package_is_refused(package: Path) -> None:
    of = graph(importlib.import_module("toolbox.parts.rows").clean)
    package.unlink()
    _forget()
    with pytest.raises(HeadgateError, match=r"'toolbox[.]parts[.]rows' is not installed") as caught:
        plan_flow(of, history={}, max_record=1)
    assert caught.value.code == "PACKAGE_MISSING"
    assert _worker_refusal(stored(of))[0] == "PACKAGE_MISSING"


def test_what_0_10_stored_is_read(package: Path) -> None:
    """It pickled such functions by reference, and wrote no source."""
    of = graph(importlib.import_module("toolbox.parts.rows").clean)
    plain = zlib.compress(pickle.dumps(Callback(sys.modules["toolbox.parts.rows"].clean)))
    code = base64.b64encode(plain).decode()
    text = json.loads(of.to_json())
    function = next(node["function"] for node in text["nodes"] if "function" in node)
    function["code"] = code
    del function["source"]
    again = Graph.from_json(json.dumps(text))
    # Python takes a file of the same size and second for the one that it has compiled.
    package.write_text(SOURCE.replace("MARK = 1", "MARK = 1 + 1"))
    _forget()
    assert plan_flow(again, history={}, max_record=1)
    clean = loaded(stored(again)).function
    assert clean(sys.modules["toolbox.parts.rows"].Row(1)).id == 3


def _worker_refusal(of: StoredFunction) -> tuple[str, str]:
    """Return the code and the message with which a worker refuses to load a function."""
    function = {"address": 7, "name": "map 'f'", "kind": "MAP", "code": of.code}
    function["given"] = base64.b64encode(pa.schema([]).serialize()).decode()
    message = {
        "memory": 0,
        "version": present_python(),
        "check": False,
        "path": [],
        "functions": [function],
    }
    told = json.dumps(message).encode()
    out = io.BytesIO()
    stream = io.BufferedRWPair(io.BytesIO(struct.pack(">i", len(told)) + told), out)
    assert worker._load(cast("BinaryIO", stream)) is None
    words = json.loads(out.getvalue()[20:])
    return words["code"], words["message"]
