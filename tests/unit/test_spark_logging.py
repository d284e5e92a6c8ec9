"""How much Spark says in a job's log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headgate.engine.session.session import spark_conf
from headgate.engine.settings import LogFormat, SparkSettings

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


@pytest.mark.parametrize("verbose", [False, True])
def test_lines_in_json_have_a_template_that_is_json(tmp_path: Path, *, verbose: bool) -> None:
    logging = _logging(
        tmp_path, "info", log_format=LogFormat.JSON, job="shöp", attempt=3, verbose=verbose
    )
    assert "PatternLayout" not in logging
    templates = re.findall(
        r"^appender\.(\w+)\.layout\.eventTemplate = (.*)$", logging, re.MULTILINE
    )
    assert [name for name, _ in templates] == (["file", "console"] if verbose else ["file"])
    for _, template in templates:
        # As Java reads a file of properties.
        fields = json.loads(template.replace("\\\\", "\\"))
        assert (fields["job"], fields["attempt"], fields["executor"]) == ("shöp", 3, "driver")


def _logging(folder: Path, level: str, **more: Any) -> str:
    settings = SparkSettings(parallelism=2, log_file=folder / "spark.log", log_level=level, **more)
    spark_conf(settings, [])
    return (folder / "spark.log4j2.properties").read_text()
