"""Jobs with little memory: the profile small, and a pool that runs out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench import Bench, bag

from headgate import Flow
from headgate.engine.settings import MIB
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.metrics.vitals_file import find_vitals
from headgate.jobs.profiles import PROFILES

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"
SMALL = PROFILES["small"]
_GB = 1_000_000_000


def run(bench: Bench) -> subprocess.CompletedProcess[str]:
    flow = Flow("small")
    flow.stream("in", "n BIGINT NOT NULL").to("out")
    file = bench.flow_file(flow)
    command = [sys.executable, "-m", "headgate", "run", str(file), "--profile", "small", "--json"]
    command += ["--on", f"files:{bench.topics}", "--home", str(bench.home), "--until-caught-up"]
    command += ["--restart", "none", "--parallelism", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_job_runs_within_the_pools_of_the_profile(bench: Bench) -> None:
    rows = [{"n": number} for number in range(100)]
    bench.put("in", rows)
    done = run(bench)
    assert done.returncode == 0, done.stderr
    assert bench.bag("out") == bag(rows)
    vitals = find_vitals(JobFolder(bench.home, "small"))
    assert vitals is not None
    limits = {name: pool.limit for name, pool in vitals.pools.items()}
    assert limits["metaspace"] == SMALL["metaspace"]
    assert limits["compiled-code"] == SMALL["code-cache"]
    assert limits["direct"] == SMALL["direct-memory"]
    assert limits["state"] == SMALL["state-memory"]
    # Java counts one of two survivor spaces.
    assert (limits["heap"] or 0) <= SMALL["driver-memory"]


def test_a_pool_that_runs_out_is_named_with_its_setting(bench: Bench) -> None:
    (bench.root / "headgate.toml").write_text(f'[profiles.small]\nmetaspace = "{8 * MIB}"\n')
    bench.put("in", [{"n": 1}])
    done = run(bench)
    assert done.returncode == 3, done.stdout
    error = json.loads(done.stderr.splitlines()[-1])
    assert error["code"] == "DRIVER_DIED"
    assert "ran out of memory" in error["message"]
    assert 'metaspace = "' in error["hint"]


@pytest.mark.long
def test_the_orders_take_less_than_a_gigabyte() -> None:
    command = [sys.executable, str(BENCHMARK), "--profiles", "small", "--rounds", "1"]
    command += ["--orders", "600000"]
    # With both compilers, as jobs run: those of other tests do without the second.
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["small"]["peak_bytes"] < _GB
