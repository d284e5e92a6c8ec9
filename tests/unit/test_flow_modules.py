"""Where the driver and Spark's Python workers import the modules of a flow from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.worker_util import setup_spark_files

from headgate.engine.user_code.flow_modules import import_from, import_on_workers


def test_a_worker_searches_the_flows_folder_before_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second", "here", "files"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    context = SimpleNamespace(environment={"A": "b"}, _python_includes=["added.zip"])
    spark = cast("SparkSession", SimpleNamespace(sparkContext=context))
    import_on_workers(spark, tmp_path / "first")
    first = dict(context.environment)
    import_on_workers(spark, tmp_path / "second")
    includes: Any = context._python_includes

    # Workers of one flow are not reused by another.
    assert context.environment != first
    assert context.environment["A"] == "b"
    monkeypatch.setattr(sys, "path", ["python's own"])
    setup_spark_files(str(tmp_path / "files"), includes)
    assert sys.path == [
        "python's own",
        *(str(tmp_path / name) for name in ("second", "here", "files/added.zip", "files")),
    ]


def test_the_driver_searches_the_flows_folder_first_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["here"])
    import_from(tmp_path)
    import_from(tmp_path)
    assert sys.path == [str(tmp_path), "here"]
