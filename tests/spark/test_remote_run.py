"""A flow that is run on a server from another process: shown, left alone, stopped, gone back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from eventually import eventually
from typer.testing import CliRunner

from headgate.cli.app import app

FLOW = """
from headgate import Flow
flow = Flow("copies")
flow.stream("numbers", "n BIGINT").transform("same:pass_on").to("out")
"""
# A worker imports it by the name of its module, which is in the folder of the server's flows.
FUNCTION = """
from pyspark.sql import functions as F

@F.udf("bigint")
def same(n):
    return n

def pass_on(df):
    return df.withColumn("n", same("n"))
"""


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    known = ("HEADGATE_SERVER", "HEADGATE_TOKEN")
    return subprocess.Popen(
        [sys.executable, "-m", "headgate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key not in known},
        **options,
    )


@contextmanager
def serving(bench: Bench, flows: Path) -> Iterator[str]:
    """Serve a home on a free port, and yield the server's URL."""
    where = ("--home", str(bench.home), "--flows", str(flows), "--on", f"files:{bench.topics}")
    server = start("serve", "--port", "0", "--json", *where)
    try:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["address"]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=180)


@pytest.mark.long
def test_a_flow_on_a_server_is_run_left_stopped_and_restored_from_here(
    bench: Bench, tmp_path: Path
) -> None:
    flows = tmp_path / "flows"
    flows.mkdir()
    (flows / "flow.py").write_text(FLOW)
    (flows / "same.py").write_text(FUNCTION)
    records = [{"n": number} for number in range(100)]
    bench.put("numbers", records)
    with serving(bench, flows) as url:

        def there(*words: str) -> dict[str, Any]:
            result = CliRunner().invoke(app, [*words, "--json", "--server", url])
            assert result.exit_code == 0, result.stderr
            answer: dict[str, Any] = json.loads(result.stdout)
            return answer

        shown = start("run", "flow.py", "--retain", "7", "--server", url)
        eventually(lambda: bench.bag("out") == bag(records), alive=shown)
        shown.send_signal(signal.SIGINT)
        _, told = shown.communicate(timeout=180)
        assert shown.returncode == 0, told
        assert "Job 'copies' starts empty, in run " in told
        assert f"Job 'copies' continues at {url}; headgate stop copies ends it" in told
        details = there("show", "copies")
        assert details["state"] == "RUNNING"
        assert details["settings"]["retain"] == {"value": 7, "from": "flag"}
        taken = there("stop", "copies", "--savepoint")["savepoint"]
        plan = there("restore", "copies", "--from", taken["savepoint"], "--dry-run")
        assert plan["records_again"] == {"numbers": 0}
        begun = there("restore", "copies", "--from", taken["savepoint"], "--detach")
        assert begun["state"] == "STARTING"
        assert begun["lineage"] != details["lineage"]
        assert there("cancel", "copies")["state"] == "CANCELED"
