"""One Spark session for all that a process of tests runs in turn.

An attempt opens a session and ends it. In a process that runs hundreds of jobs that took longer
than their batches, so the session stays until one with other settings is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from headgate._kernel.gateway import has_jvm, start_jvm
from headgate.engine.session import session
from headgate.engine.settings import SparkSettings

# Given to the JVM when it starts, and to no session after that.
_OF_THE_JVM = ("spark.driver.extraJavaOptions", "spark.driver.memory")
_end = SparkSession.stop
_get = SparkSession.Builder.getOrCreate


def share_session() -> None:
    """Have every session that ends stay, for others with the same settings."""
    if SparkSession.stop is not _stop:
        session.spark_conf = _Confs()
        SparkSession.stop = _stop  # type: ignore[assignment, method-assign]
        SparkSession.Builder.getOrCreate = _get_or_create  # type: ignore[assignment, method-assign]


def _stop(spark: SparkSession) -> None:
    """End the queries of a session, and leave it to the next who asks."""
    for query in spark.streams.active:
        query.stop()


def _get_or_create(builder: SparkSession.Builder) -> SparkSession:
    """Return a session that is the active one of this thread, as a new one would be."""
    spark = _get(builder)
    sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    sessions.setActiveSession(spark._jsparkSession)
    return spark


class _Confs:
    """Sees the settings of each session that is opened, and ends one that has others."""

    def __init__(self) -> None:
        self._conf_of = session.spark_conf
        self._present: dict[str, str] = {}

    def __call__(self, settings: SparkSettings, jars: Sequence[Path]) -> dict[str, str]:
        conf = self._conf_of(settings, jars)
        if not jars:
            # A test looks at the settings: a JVM without the kernel would stay for all others.
            return conf
        if not has_jvm():
            # The JVM outlives the first job: it must not lie in that job's scratch folder.
            start_jvm(conf, streams=settings.log_file.with_suffix(".out"))
        wanted = {name: value for name, value in conf.items() if name not in _OF_THE_JVM}
        spark = SparkSession._instantiatedSession
        if spark is not None and wanted != self._present:
            _end(spark)
        self._present = wanted
        return conf
