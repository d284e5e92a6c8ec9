"""The JVM alone is killed: the job says so, starts another, and repeats nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, bag
from eventually import eventually

from headgate import Flow

FUNCTION = """
from pyspark.sql import functions as F

@F.udf("bigint")
def same(n):
    return n

def pass_on(df):
    return df.withColumn("n", same("n"))
"""


@pytest.mark.long
def test_a_killed_jvm_is_told_as_a_died_driver_and_loses_nothing(bench: Bench) -> None:
    # A worker of each driver imports the function's module, from any working directory.
    (bench.root / "passing_on.py").write_text(FUNCTION)
    flow = Flow("killed")
    flow.stream("in", "n BIGINT NOT NULL").transform("passing_on:pass_on", schema="n BIGINT").to(
        "out"
    )
    bench.put("in", [{"n": 1}])
    command = [sys.executable, "-m", "headgate", "run", str(bench.flow_file(flow)), "--json"]
    command += ["--on", f"files:{bench.topics}", "--home", str(bench.home)]
    command += ["--batch-every", "100ms", "--restart", "fixed-delay:3,0s", "--parallelism", "1"]
    with (bench.root / "run.out").open("wb") as out:
        supervisor = subprocess.Popen(
            command, stdout=out, stderr=out, start_new_session=True, cwd=bench.topics
        )
    try:
        eventually(lambda: bench.read("out"), alive=supervisor)
        worker = int(_status(bench)["child"])
        (jvm,) = _children_of(worker)
        os.kill(jvm, signal.SIGKILL)
        eventually(lambda: _events(bench, "FAILURE"), alive=supervisor)
        bench.put("in", [{"n": 2}])
        eventually(lambda: len(bench.read("out")) > 1, alive=supervisor)
    finally:
        supervisor.terminate()
        supervisor.wait(120)
    (failure,) = _events(bench, "FAILURE")
    assert (failure["code"], failure["retryable"]) == ("DRIVER_DIED", True), failure
    assert "killed by signal 9" in failure["message"]
    assert bench.bag("out") == bag([{"n": 1}, {"n": 2}])
    log = (bench.home / "jobs" / "killed" / "logs" / "spark.log").read_text()
    assert "MicroBatchExecution: " in log
    assert "progress metrics" not in log


def _status(bench: Bench) -> dict[str, Any]:
    file = bench.home / "jobs" / "killed" / "status.json"
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def _events(bench: Bench, kind: str) -> list[dict[str, Any]]:
    file = bench.home / "jobs" / "killed" / "events.jsonl"
    told = [json.loads(line) for line in file.read_text().splitlines()]
    return [each for each in told if each["event"] == kind]


def _children_of(parent: int) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            rest = (process / "stat").read_text().rpartition(")")[2].split()
            if int(rest[1]) == parent:
                found.append(int(process.name))
    return found
