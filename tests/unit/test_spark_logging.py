"""How much Spark says in a job's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.engine.session.session import spark_conf
from headgate.engine.settings import SparkSettings

_STATE = "logger.state.name = org.apache.spark.sql.execution.streaming.state\n"


def test_stores_tasks_and_metrics_of_each_batch_are_not_told_of(tmp_path: Path) -> None:
    logging = _logging(tmp_path, "info")
    assert _STATE in logging
    assert "streaming.runtime.MicroBatchExecutionContext\nlogger.metrics.level = warn" in logging


@pytest.mark.parametrize("level", ["error", "warn", "debug"])
def test_any_other_level_holds_for_them_as_well(tmp_path: Path, level: str) -> None:
    assert _STATE not in _logging(tmp_path, level)


def test_the_level_is_the_one_asked_for(tmp_path: Path) -> None:
    assert "rootLogger.level = warn\n" in _logging(tmp_path, "warn")


def _logging(folder: Path, level: str) -> str:
    settings = SparkSettings(parallelism=2, log_file=folder / "spark.log", log_level=level)
    spark_conf(settings, [])
    return (folder / "spark.log4j2.properties").read_text()
