"""A job on a standalone cluster of this host, and the functions of its flow on the cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from bench import Bench, bag
from eventually import eventually

from headgate import Flow

FUNCTION = """
import halving
from pyspark.sql import functions as F

@F.udf("bigint")
def halved(n):
    return halving.halve(n)

def halve(df):
    return df.withColumn("n", halved("n"))
"""
HALVING = """
def halve(n):
    if n == 7:
        raise ValueError("7 is odd")
    return n // 2
"""


@pytest.mark.long
def test_a_job_on_a_cluster_imports_what_is_beside_its_flow(bench: Bench) -> None:
    (bench.root / "function.py").write_text(FUNCTION)
    (bench.root / "halving.py").write_text(HALVING)
    flow = Flow("halves")
    flow.stream("in", "n BIGINT NOT NULL").transform("function:halve", schema="n BIGINT").to("out")
    file = bench.flow_file(flow)
    bench.put("in", [{"n": 2}, {"n": 4}])
    with _cluster(bench.root) as master:
        profile = f'[profiles.cluster]\nmaster = "{master}"\nexecutor-memory = "512MiB"\n'
        (bench.root / "headgate.toml").write_text(profile)
        done = _run(bench, file)
        assert done.returncode == 0, done.stderr
        assert bench.bag("out") == bag([{"n": 1}, {"n": 2}])

        bench.put("in", [{"n": 7}])
        failed = _run(bench, file)
    assert failed.returncode == 2, failed.stderr
    assert "error FUNCTION_FAILED" in failed.stderr
    assert f"ValueError: 7 is odd ({bench.root / 'halving.py'}, line 4, in halve" in failed.stderr


def _run(bench: Bench, flow: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate", "run", str(flow), "--profile", "cluster"]
    command += ["--on", f"files:{bench.topics}", "--home", str(bench.home), "--until-caught-up"]
    command += ["--restart", "none", "--parallelism", "1"]
    # Neither the job nor the cluster is started in the flow's folder.
    return subprocess.run(
        command, cwd=bench.topics, capture_output=True, text=True, timeout=300, check=False
    )


@contextmanager
def _cluster(root: Path) -> Iterator[str]:
    """Start a master and a worker, and give the master's address."""
    master, worker = root / "master.log", root / "worker.log"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    processes = [_start("master.Master", master, *here, "--port", "0")]
    try:
        address = _find(master, processes[0], r"Starting Spark master at (spark://\S+)")
        options = ["-c", "1", "-m", "1g", "-d", str(root / "work")]
        processes.append(_start("worker.Worker", worker, *here, *options, address))
        _find(worker, processes[1], r"(Successfully registered) with master")
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(60)


def _start(daemon: str, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    spark_home = Path(pyspark.__file__).parent
    logging = log.with_suffix(".log4j2.properties")
    logging.write_text(
        "rootLogger.level = info\n"
        "rootLogger.appenderRef.console.ref = console\n"
        "appender.console.type = Console\n"
        "appender.console.name = console\n"
        "appender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %m%n\n"
    )
    options = f"-Dlog4j2.configurationFile={logging.as_uri()}"
    with log.open("wb") as output:
        return subprocess.Popen(
            [
                str(spark_home / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{daemon}",
                *arguments,
            ],
            stdout=output,
            stderr=output,
            cwd=log.parent / "topics",
            env={**os.environ, "SPARK_HOME": str(spark_home), "SPARK_DAEMON_JAVA_OPTS": options},
        )


def _find(log: Path, process: subprocess.Popen[bytes], pattern: str) -> str:
    match = eventually(
        lambda: re.search(pattern, log.read_text(errors="replace")),
        what=lambda: log.read_text(errors="replace"),
        alive=process,
    )
    return match[1]
