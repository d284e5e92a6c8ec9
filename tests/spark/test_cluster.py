"""Functions of a flow on a standalone cluster, and clusters that cannot run a job."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from bench import Bench, bag

from headgate import Flow
from headgate.jobs.sandbox.cluster import ClusterOptions, start_cluster, stop_cluster

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a cluster with one worker."""
    folder = tmp_path_factory.mktemp("cluster")
    options = ClusterOptions(folder=folder, workers=1, memory=1024**3, port=0)
    try:
        yield start_cluster(options)[0].master or ""
    finally:
        stop_cluster(folder)


@pytest.mark.long
def test_a_job_on_a_cluster_imports_what_is_beside_its_flow(bench: Bench, cluster: str) -> None:
    """Spark's own workers, too, use the environment and the modules that executors were sent."""
    (bench.root / "function.py").write_text(FUNCTION)
    (bench.root / "halving.py").write_text(HALVING)
    flow = Flow("halves")
    stream = flow.stream("in", "n BIGINT NOT NULL")
    stream.transform("function:halve", schema="n BIGINT").to("out")
    file = bench.flow_file(flow)
    bench.put("in", [{"n": 2}, {"n": 4}])
    environment = ("--py-env", str(_environment(bench.root)))
    done = _run(bench, file, cluster, *environment)
    assert done.returncode == 0, done.stderr
    assert bench.bag("out") == bag([{"n": 1}, {"n": 2}])

    bench.put("in", [{"n": 7}])
    failed = _run(bench, file, cluster, *environment)
    assert failed.returncode == 2, failed.stderr
    assert "error FUNCTION_FAILED" in failed.stderr
    # The file of the user, and not the copy that executors have.
    assert f"ValueError: 7 is odd ({bench.root / 'halving.py'}, line 4, in halve" in failed.stderr


@pytest.mark.long
def test_a_cluster_without_room_for_an_executor_is_given_up(bench: Bench, cluster: str) -> None:
    flow = Flow("copies")
    flow.stream("in", "n BIGINT").to("out")
    bench.put("in", [{"n": 1}])
    profile = '[job]\nprofile = "busy"\n[profiles.busy]\nexecutor-wait = "10s"\n'
    (bench.root / "headgate.toml").write_text(profile)
    done = _run(bench, bench.flow_file(flow), cluster, "--executor-memory", "64GiB")
    assert done.returncode == 3, done.stderr
    assert "has given no executor yet: one needs 1 core and 64GiB" in done.stderr
    assert "error NO_EXECUTORS" in done.stderr


def _environment(folder: Path) -> Path:
    """Return an archive with a Python that uses the packages of this one, as an absolute link."""
    made = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Path(pyspark.__file__).parents[1]
    (made / "lib" / version / "site-packages" / "here.pth").write_text(f"{packages}\n")
    archive = folder / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as target:
        target.add(made, ".")
    return archive


def _run(bench: Bench, flow: Path, master: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headgate", "run", str(flow), "--master", master]
    command += ["--on", f"files:{bench.topics}", "--home", str(bench.home), "--until-caught-up"]
    command += ["--restart", "none", "--parallelism", "1"]
    if "--executor-memory" not in more:
        command += ["--executor-memory", "512MiB"]
    # Neither the job nor the cluster is started in the flow's folder.
    return subprocess.run(
        [*command, *more],
        cwd=bench.topics,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
