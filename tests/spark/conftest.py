"""Spark for tests: one JVM and one session for the whole run of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench import Bench
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from headgate.engine.session.session import open_session
from headgate.engine.settings import SparkSettings

# The same examples in every run; a failure prints what reproduces it.
settings.register_profile(
    "spark",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("spark")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give a session for compiled flows that are run in memory."""
    log = tmp_path_factory.mktemp("spark") / "spark.log"
    session = open_session(SparkSettings(parallelism=2, log_file=log))
    yield session
    session.stop()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a folder of topics and jobs of the test's own."""
    return Bench(tmp_path)
