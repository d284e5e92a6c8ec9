"""One Spark session for all that a process of tests runs in turn.

An attempt opens a session and ends it. In a process that runs hundreds of jobs that took longer
than their batches, so the session stays until one with other settings is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.engine import session
from headgate.engine.settings import SparkSettings

# Given to the JVM when it starts, and to no session after that.
_OF_THE_JVM = ("spark.driver.extraJavaOptions", "spark.driver.memory")


def share_session() -> None:
    """Have every session that ends stay, for others with the same settings."""
    if SparkSession.stop is not _stop:
        session.spark_conf = _Confs()
        SparkSession.stop = _stop  # type: ignore[assignment, method-assign]


_end = SparkSession.stop


def _stop(spark: SparkSession) -> None:
    """End the queries of a session, and leave it to the next who asks."""
    for query in spark.streams.active:
        query.stop()


class _Confs:
    """Sees the settings of each session that is opened, and ends one that has others."""

    def __init__(self) -> None:
        self._conf_of = session.spark_conf
        self._present: dict[str, str] = {}

    def __call__(self, settings: SparkSettings, jars: Sequence[Path]) -> dict[str, str]:
        conf = self._conf_of(settings, jars)
        wanted = {name: value for name, value in conf.items() if name not in _OF_THE_JVM}
        spark = SparkSession._instantiatedSession
        if spark is not None and wanted != self._present:
            _end(spark)
        self._present = wanted
        return conf
