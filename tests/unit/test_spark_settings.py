"""What Spark and its JVM are started with."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.engine.session.session import spark_conf
from headgate.engine.settings import MIB, SparkSettings


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]"])
def test_what_one_process_shuffles_is_neither_compressed_nor_summed(
    tmp_path: Path, master: str
) -> None:
    conf = _conf(tmp_path, master)
    assert conf["spark.shuffle.compress"] == "false"
    assert conf["spark.shuffle.checksum.enabled"] == "false"
    sums = "spark.sql.shuffle.orderIndependentChecksum"
    assert conf[f"{sums}.enabled"] == conf[f"{sums}.enableFullRetryOnMismatch"] == "false"


@pytest.mark.parametrize(
    "master", ["spark://h:7077", "yarn", "k8s://h:6443", "local-cluster[2,1,1024]"]
)
def test_what_goes_over_a_network_is_left_to_spark(tmp_path: Path, master: str) -> None:
    names = list(_conf(tmp_path, master))
    ways = ("spark.shuffle.c", "spark.sql.shuffle.order")
    assert not [name for name in names if name.startswith(ways)]


@pytest.mark.skipif(sys.platform != "linux", reason="an option of Linux's JVMs")
def test_the_heap_is_in_huge_pages_where_the_system_has_them(tmp_path: Path) -> None:
    options = _conf(tmp_path, "local[*]")["spark.driver.extraJavaOptions"]
    assert "-XX:+UseTransparentHugePages" in options.split()


def test_a_cluster_gets_the_jars_and_the_address_of_its_driver(tmp_path: Path) -> None:
    conf = _conf(
        tmp_path,
        "spark://h:7077",
        jars=[tmp_path / "a b.jar", Path("/c.jar")],
        driver_host="10.0.0.5",
    )
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "10.0.0.5"
    assert conf["spark.jars"] == f"{tmp_path.as_uri()}/a%20b.jar,file:///c.jar"
    # Paths of the driver mean nothing on another machine.
    assert "spark.executor.extraClassPath" not in conf
    bound = _conf(tmp_path, "spark://h:7077", driver_host="gate.example", driver_bind="0.0.0.0")
    assert bound["spark.driver.host"] == "gate.example"
    assert bound["spark.driver.bindAddress"] == "0.0.0.0"
    assert "spark.driver.host" not in _conf(tmp_path, "yarn")


def test_a_local_driver_is_reached_from_this_machine_alone(tmp_path: Path) -> None:
    conf = _conf(tmp_path, "local[*]")
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.jars" not in conf


def test_a_lost_executor_costs_another_try_and_state_stays_where_it_is(tmp_path: Path) -> None:
    conf = _conf(tmp_path, "spark://h:7077")
    assert conf["spark.task.maxFailures"] == "4"
    assert (conf["spark.locality.wait"], conf["spark.locality.wait.process"]) == ("0s", "1s")
    assert conf["spark.scheduler.minRegisteredResourcesRatio"] == "1.0"


def test_an_executor_that_reports_nothing_is_given_up_in_the_time_that_was_set(
    tmp_path: Path,
) -> None:
    conf = _conf(tmp_path, "spark://h:7077", executor_timeout=timedelta(seconds=24))
    assert conf["spark.storage.blockManagerHeartbeatTimeoutMs"] == "24000ms"
    assert conf["spark.executor.heartbeatInterval"] == "3000ms"
    assert conf["spark.network.timeoutInterval"] == "3000ms"
    # One answer that does not come, and two connections after a pause each.
    again = int(conf["spark.shuffle.io.maxRetries"]) * (2000 + 3000)
    assert conf["spark.shuffle.io.connectionCreationTimeout"] == "3000ms"
    assert conf["spark.shuffle.io.connectionTimeout"] == "18000ms"
    assert 18000 + again < 2 * 24000
    assert "spark.executor.heartbeatInterval" not in _conf(tmp_path, "local[2]")


@pytest.mark.parametrize(
    ("master", "executors", "cores", "expected"),
    [
        ("spark://h:1", None, None, {}),
        ("spark://h:1", None, 2, {"executor.cores": "2"}),
        ("spark://h:1", 3, None, {"executor.cores": "1", "cores.max": "3"}),
        ("spark://h:1", 3, 2, {"executor.cores": "2", "cores.max": "6"}),
        ("k8s://h:1", 3, 2, {"executor.cores": "2", "executor.instances": "3"}),
        ("yarn", 3, None, {"executor.cores": "1", "executor.instances": "3"}),
    ],
)
def test_executors_have_the_size_that_was_asked_for(
    tmp_path: Path, master: str, executors: int | None, cores: int | None, expected: dict[str, str]
) -> None:
    conf = _conf(tmp_path, master, executors=executors, executor_cores=cores)
    sizes = ("executor.cores", "executor.instances", "cores.max")
    found = {name: conf[f"spark.{name}"] for name in sizes if f"spark.{name}" in conf}
    assert found == expected
    assert conf["spark.executor.memory"] == "1024m"
    # Where a container bounds an executor, its state needs room beside the heap.
    overhead = conf.get("spark.executor.memoryOverhead")
    assert overhead == (None if master.startswith("spark:") else f"{384 + 512}m")


@pytest.mark.parametrize(
    ("master", "side"), [("local[2]", "driver"), ("spark://h:1", "driver"), ("yarn", "executor")]
)
def test_each_pool_of_a_jvm_has_its_limit(tmp_path: Path, master: str, side: str) -> None:
    name = f"spark.{side}.extraJavaOptions"
    default = _conf(tmp_path, master)[name].split()
    assert f"-XX:ReservedCodeCacheSize={512 * MIB}" in default
    assert not [option for option in default if option.startswith("-XX:Max")]
    limited = _conf(
        tmp_path, master, metaspace=100 * MIB, code_cache=64 * MIB, direct_memory=32 * MIB
    )[name].split()
    assert f"-XX:MaxMetaspaceSize={100 * MIB}" in limited
    assert f"-XX:ReservedCodeCacheSize={64 * MIB}" in limited
    assert f"-XX:MaxDirectMemorySize={32 * MIB}" in limited
    # Java does not start with a threshold of collections above the limit.
    assert side == "executor" or f"-XX:MetaspaceSize={100 * MIB}" in limited


def test_an_executor_starts_with_any_direct_memory(tmp_path: Path) -> None:
    """Spark refuses one whose direct memory is smaller than a block it may fetch."""
    name = "spark.network.maxRemoteBlockSizeFetchToMem"
    assert name not in _conf(tmp_path, "spark://h:1")
    for limit, block in ((32 * MIB, 16 * MIB), (128 * MIB, 64 * MIB), (1024 * MIB, 200 * MIB)):
        assert _conf(tmp_path, "spark://h:1", direct_memory=limit)[name] == f"{block}b"


def test_spark_sorts_beside_the_heap_only_if_asked_to(tmp_path: Path) -> None:
    assert "spark.memory.offHeap.enabled" not in _conf(tmp_path, "local[2]")
    conf = _conf(tmp_path, "local[2]", off_heap_memory=256 * MIB)
    assert conf["spark.memory.offHeap.enabled"] == "true"
    assert conf["spark.memory.offHeap.size"] == f"{256 * MIB}b"


def test_the_overhead_of_executors_is_the_one_that_was_set(tmp_path: Path) -> None:
    conf = _conf(tmp_path, "yarn", executor_overhead=700 * MIB)
    assert conf["spark.executor.memoryOverhead"] == "700m"


def _conf(
    folder: Path, master: str, *, jars: Sequence[Path] = (), **settings: Any
) -> dict[str, str]:
    log = folder / "spark.log"
    return spark_conf(SparkSettings(parallelism=2, master=master, log_file=log, **settings), jars)
