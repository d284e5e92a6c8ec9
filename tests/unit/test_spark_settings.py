"""What Spark and its JVM are started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.engine.session import spark_conf
from headgate.engine.settings import SparkSettings


@pytest.mark.parametrize("master", ["local[*]", "local[4]"])
def test_what_one_process_shuffles_is_neither_compressed_nor_summed(
    tmp_path: Path, master: str
) -> None:
    conf = _conf(tmp_path, master)
    assert conf["spark.shuffle.compress"] == "false"
    assert conf["spark.shuffle.checksum.enabled"] == "false"


@pytest.mark.parametrize("master", ["spark://h:7077", "yarn", "k8s://h:6443"])
def test_what_goes_over_a_network_is_left_to_spark(tmp_path: Path, master: str) -> None:
    assert not [name for name in _conf(tmp_path, master) if name.startswith("spark.shuffle")]


def _conf(folder: Path, master: str) -> dict[str, str]:
    return spark_conf(
        SparkSettings(parallelism=2, master=master, log_file=folder / "spark.log"), []
    )
