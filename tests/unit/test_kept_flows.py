"""Flows without a file: typed at a prompt or in a notebook, and kept in the job's folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

import headgate
from headgate import Flow, HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.jobs.flow_file import KEPT_FLOW, find_flow, hold_flow, keep_flow, load_flow
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.startup.background import start_detached
from headgate.jobs.values import RunOptions
from headgate.jobs.views.job import view_job

# What a prompt runs: a helper beside it, a class and functions of the main module.
PROMPT = """
from dataclasses import dataclass
import lib
from headgate import Flow, KeyedProcess, Value

@dataclass
class Order:
    id: int
    price: float

@dataclass
class Seen:
    id: int
    count: int

class Count(KeyedProcess[Order, Seen]):
    count: Value[int]
    limit = 3
    def on_event(self, event, ctx):
        n = (self.count.get() or 0) + 1
        self.count.set(n)
        ctx.emit(Seen(event.id, n))

def tax(order: Order) -> Order:
    return Order(order.id, lib.taxed(order.price))

flow = Flow("typed")
orders = flow.stream("orders", Order).map("tax", tax).filter(lambda order: order.price > {more})
orders.key_by("id").process("count", Count()).out.to("seen")
print(flow.graph().to_json())
"""


def type_(text: str, folder: Path) -> Graph:
    """Return the graph that a prompt in a folder prints."""
    (folder / "lib.py").write_text("def taxed(price):\n    return price * 1.5\n")
    done = subprocess.run(
        [sys.executable, "-"], input=text, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Graph.from_json(done.stdout)


def test_a_flow_that_is_typed_twice_is_the_same_flow(tmp_path: Path) -> None:
    first = type_(PROMPT.format(more=0), tmp_path)
    assert type_(PROMPT.format(more=0), tmp_path) == first
    assert type_(PROMPT.format(more=1), tmp_path) != first
    assert type_(PROMPT.format(more=0).replace("+ 1", "+ 2"), tmp_path) != first
    assert type_(PROMPT.format(more=0).replace("limit = 3", "limit = 4"), tmp_path) != first


def test_typed_functions_bring_their_modules_along(tmp_path: Path) -> None:
    graph = type_(PROMPT.format(more=0), tmp_path)
    home = JobFolder(tmp_path / ".headgate", "typed")
    kept = find_flow(home, keep_flow(home, hold_flow(graph, home.root)))
    (tmp_path / "lib.py").unlink()
    call = (
        "import base64, sys\n"
        "from headgate.functions.stored import load\n"
        "from headgate.jobs.flow_file import load_flow\n"
        "stored = load_flow(sys.argv[1]).graph.node('tax').function\n"
        "callback = load(base64.b64decode(stored.code))\n"
        "print(callback.function(callback.argument.make(7, 2.0)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", call, kept], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.stdout == "Order(id=7, price=3.0)\n", done.stderr


def copies() -> Flow:
    flow = Flow("copies")
    flow.stream("orders", "id BIGINT").to("out")
    return flow


def test_a_script_that_multiprocessing_knows_by_a_second_name_stores_its_functions(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from headgate import Flow\n"
        "def more(row):\n"
        "    return row\n"
        "assert sys.modules['__mp_main__'] is sys.modules['__main__']\n"
        "flow = Flow('f')\n"
        "flow.stream('in', 'id BIGINT').map('more', more, schema='id BIGINT').to('out')\n"
        "print(len(flow.graph().to_json()))\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_a_kept_flow_is_named_relative_to_its_job(tmp_path: Path) -> None:
    home = JobFolder(tmp_path / "here", "copies")
    graph = copies().graph()
    assert keep_flow(home, hold_flow(graph, home.root)) == KEPT_FLOW
    (tmp_path / "here").rename(tmp_path / "there")
    moved = JobFolder(tmp_path / "there", "copies")
    again = load_flow(find_flow(moved, KEPT_FLOW))
    assert again.graph == graph
    # A start from the kept flow keeps the name, and any other file goes by its own.
    assert keep_flow(moved, again) == KEPT_FLOW
    (tmp_path / "flow.json").write_text(graph.to_json())
    other = load_flow(str(tmp_path / "flow.json"))
    assert find_flow(moved, keep_flow(moved, other)) == str(tmp_path / "flow.json")


def test_a_function_that_is_named_and_not_given_is_refused(tmp_path: Path) -> None:
    flow = Flow("copies")
    flow.stream("orders", "id BIGINT").transform("lib:clean").to("out")
    with pytest.raises(
        HeadgateError, match=r"transform 'orders\.transform-1' names 'lib:clean'"
    ) as e:
        hold_flow(flow.graph(), tmp_path)
    assert e.value.code == "FUNCTION_NOT_STORED"


@pytest.fixture
def background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobFolder]:
    """Give the folder of a job whose JVM comes up for ever."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(headgate.__file__).parents[1]))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "java").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    home = JobFolder(Path(".headgate"), "copies")
    yield home
    if has_supervisor(home):
        os.kill(int((home.find_json("status.json") or {})["pid"]), signal.SIGKILL)


def test_a_job_without_a_file_is_started_again_by_its_name(background: JobFolder) -> None:
    jobs = FolderHome(background.root)
    start_detached(hold_flow(copies().graph(), background.root), RunOptions(home=background.root))
    stored = json.loads((background.path / "job.json").read_text())
    assert stored["flow"] == KEPT_FLOW
    assert jobs.details("copies").flow == str(background.path / KEPT_FLOW)
    # A flow of this name that is refused does not take the place of the one that runs.
    other = Flow("copies")
    other.stream("orders", "id BIGINT").to("elsewhere")
    with pytest.raises(HeadgateError) as refused:
        start_detached(hold_flow(other.graph(), background.root), RunOptions(home=background.root))
    assert refused.value.code == "JOB_RUNNING"
    assert load_flow(jobs.last_start("copies")[0]).graph == copies().graph()
    jobs.cancel("copies")
    jobs.start("copies")
    eventually(lambda: has_supervisor(background))
    assert view_job(background).state == "STARTING"
    jobs.cancel("copies")
