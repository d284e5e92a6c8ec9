"""What Spark and its JVM are started with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headgate.engine.session.session import spark_conf
from headgate.engine.settings import SparkSettings


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
    assert not [
        name for name in names if name.startswith(("spark.shuffle", "spark.sql.shuffle.order"))
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="an option of Linux's JVMs")
def test_the_heap_is_in_huge_pages_where_the_system_has_them(tmp_path: Path) -> None:
    options = _conf(tmp_path, "local[*]")["spark.driver.extraJavaOptions"]
    assert "-XX:+UseTransparentHugePages" in options.split()


def _conf(folder: Path, master: str) -> dict[str, str]:
    return spark_conf(
        SparkSettings(parallelism=2, master=master, log_file=folder / "spark.log"), []
    )
