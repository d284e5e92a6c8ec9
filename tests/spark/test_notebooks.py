"""Notebooks with real kernels and real jobs: the example, and a kernel that is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from eventually import eventually
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

import headgate
from headgate.jobs.folder_home import FolderHome

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook" / "spending.ipynb"
MARK = "HEADGATE_TEST_MARK"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a working directory whose kernels carry a mark, and end its reader of state."""
    monkeypatch.setenv(MARK, str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(Path(headgate.__file__).parents[1]))
    yield tmp_path
    for pid in processes(tmp_path):
        os.kill(pid, signal.SIGKILL)


def processes(folder: Path) -> list[int]:
    """Return the processes of the kernels of a test, their jobs and JVMs among them."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            environment = (each / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"{MARK}={folder}".encode() in environment and int(each.name) != os.getpid():
            found.append(int(each.name))
    return found


def read_example() -> Any:
    # Its library declares no types.
    read: Any = nbformat.read
    return read(EXAMPLE, as_version=4)


def read_outputs(notebook: Any, cell: str) -> dict[str, str]:
    """Return what a cell shows, by MIME type; texts of several outputs are joined."""
    shown: dict[str, str] = {}
    for output in next(each for each in notebook.cells if each.id == cell).outputs:
        data = output.get("data") or {f"stream/{output.get('name')}": output.get("text", "")}
        for kind, text in data.items():
            shown[kind] = shown.get(kind, "") + text
    return shown


def count_orders(batches: list[int]) -> dict[str, int]:
    """Return the number of orders by customer, as the notebook draws them."""
    draws = random.Random(1)
    counts: dict[str, int] = {}
    for size in batches:
        for _ in range(size):
            customer = draws.choice(["ada", "bob", "eve"])
            counts[customer] = counts.get(customer, 0) + 1
    return counts


@pytest.mark.long
def test_the_example_runs_and_shows_what_it_says(folder: Path) -> None:
    notebook = read_example()
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    assert "<svg" in read_outputs(notebook, "flow")["text/html"]
    preview = read_outputs(notebook, "preview")
    assert "17.85" in preview["text/html"]
    assert "MISSING_FIELD" in preview["text/plain"]
    run = read_outputs(notebook, "run")["text/html"]
    assert '<progress max="1" value="1.000">' in run
    assert "FINISHED · 1,000 records read · 1,000 rows written" in run
    assert "key_by customer 1,000" in run
    first = count_orders([1000])
    assert f"'orders': {first['ada']}" in read_outputs(notebook, "state")["text/plain"]
    rows = read_outputs(notebook, "rows")["text/html"]
    for customer, count in first.items():
        assert f">{customer}</td>" in rows
        assert f">{count}</td>" in rows
        assert f">{round(count * 11.9, 2)}</td>" in rows
    assert "COMPLETED" in read_outputs(notebook, "checkpoints")["text/html"]
    assert read_outputs(notebook, "again")["text/plain"].endswith(">1500")
    assert "savepoint" in read_outputs(notebook, "savepoint")["text/html"]
    # The kernel is gone, and what it ran; the reader of state is shared, and ends when it is idle.
    FolderHome(folder / ".headgate").state.close()
    eventually(lambda: not processes(folder), what=lambda: processes(folder))
    # The job needs neither the notebook nor its kernel.
    flow, _ = FolderHome(folder / ".headgate").last_start("spending")
    assert flow == str(folder / ".headgate" / "jobs" / "spending" / "flow.json")


def test_the_example_is_stored_without_outputs() -> None:
    notebook = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.long
def test_a_killed_kernel_takes_its_job_along_and_the_next_one_goes_on(folder: Path) -> None:
    cells = {cell.id: cell.source for cell in read_example().cells}
    declared = "\n".join(cells[name] for name in ("classes", "flow"))
    records = cells["records"].replace("1000)", "200_000)")
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel(cwd=str(folder))
    client = kernel.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    client.execute(f"{declared}\n{records}\nflow.run(batch_every='0s', max_batch='64KiB')")
    home = FolderHome(folder / ".headgate")
    eventually(lambda: home.names() == ["spending"] and home.job("spending").checkpoint)
    assert len(processes(folder)) >= 4
    provisioner: Any = kernel.provisioner
    os.kill(provisioner.pid, signal.SIGKILL)
    eventually(lambda: not processes(folder), what=lambda: processes(folder))
    client.stop_channels()
    assert home.job("spending").state == "DEAD"
    # A prompt that declares the same flow goes on, and no order is counted twice.
    again = f"{declared}\nprint(flow.run(until_caught_up=True, max_batch='64MiB').status.state)"
    run = [sys.executable, "-c", again]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout == "FINISHED\n", done.stderr
    job = headgate.connect(home.folder).job("spending")
    rows = job.state("spending").query("SELECT customer, orders FROM state")
    assert {row["customer"]: row["orders"] for row in rows} == count_orders([200_000])
    tail = [sys.executable, "-m", "headgate", "tail", "spent", "-n", "1000000"]
    told = subprocess.run(tail, cwd=folder, capture_output=True, text=True, check=True).stdout
    totals = [json.loads(line) for line in told.splitlines()]
    seen = sorted((each["customer"], each["orders"]) for each in totals)
    wanted = count_orders([200_000])
    assert seen == sorted((name, n) for name in wanted for n in range(1, wanted[name] + 1))
    # In the background, from its savepoint, without what the prompt declared.
    savepoint = job.take_savepoint()
    assert job.restore(savepoint.name).checkpoint == savepoint.name
    eventually(lambda: job.status.state == "RUNNING")
    stopped = job.stop(savepoint=True)
    assert stopped is not None
    # No batch has run in between, so both are as old.
    assert {each.id for each in job.savepoints()} == {savepoint.name, stopped.name}
    assert job.wait().state == "STOPPED"
    home.state.close()
