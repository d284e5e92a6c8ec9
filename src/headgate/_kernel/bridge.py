"""The kernel as Python sees it: the one place that calls into the JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate._kernel.translate import translated

GATED_SOURCE = "io.headgate.kernel.gate.GatedSource"
CLOCK_SOURCE = "io.headgate.kernel.time.ClockSource"
FLOW_SINK = "io.headgate.kernel.sink.FlowSink"


class Gate:
    """Orders to a query's gates. They take effect before the next batch, from any thread."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        self._run = run
        self._class = kernel(spark).gate.Gatekeeper
        self._clocks = kernel(spark).time.Clocks
        self._keeper = self._class.of(run)

    def open(self) -> None:
        """Let batches run."""
        self._keeper.open()

    def hold(self) -> None:
        """Let no further batch begin until the gate is opened."""
        self._keeper.hold()

    def stop(self) -> None:
        """End the query before its next batch."""
        self._keeper.stop()

    def stop_when_caught_up(self) -> None:
        """End the query once all that was there when it started has been read."""
        self._keeper.untilCaughtUp()

    def drain(self) -> None:
        """End the query likewise, and event time before it: every window is over then."""
        self._keeper.drain()

    def set_min_pause(self, pause: timedelta) -> None:
        """Let no batch begin sooner than this after the one before was written."""
        self._keeper.minPause(to_millis(pause))

    def is_loading(self) -> bool:
        """Tell whether streams still wait for tables to be read."""
        return bool(self._keeper.isLoading())

    def forget(self) -> None:
        """Drop the gates of a query that has ended."""
        self._clocks.forget(self._run)
        self._class.forget(self._run)


class Feeds:
    """What a query tells while it runs; nothing is told twice."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        self._run = run
        self._progress = kernel(spark).ProgressFeed()
        self._row_class = kernel(spark).sink.RowFeed
        self._rows = self._row_class.of(run)
        self._sink_class = kernel(spark).sink.FlowSink
        self._event_class = kernel(spark).EventFeed
        self._events = self._event_class.of(run)
        self._streams = spark._jsparkSession.streams()
        self._streams.addListener(self._progress)

    def progress(self) -> list[dict[str, Any]]:
        """Return Spark's progress reports since the last call, oldest first."""
        return [json.loads(report) for report in json.loads(self._progress.drain())]

    def await_end(self, seconds: float) -> None:
        """Wait until all reports of a query that has ended are there, but no longer than this."""
        self._progress.awaitEnd(round(seconds * 1000))

    def rows(self) -> list[tuple[str, str]]:
        """Return rows for the terminal since the last call: pairs of output and JSON text."""
        return [(pair[0], pair[1]) for pair in json.loads(self._rows.drain())]

    def events(self) -> list[tuple[str, str, str]]:
        """Return what happened to topics since the last call: kind, source and message."""
        return [(each[0], each[1], each[2]) for each in json.loads(self._events.drain())]

    def close(self) -> None:
        """Stop listening."""
        self._streams.removeListener(self._progress)
        self._event_class.forget(self._run)
        self._sink_class.forget(self._run)
        self._row_class.forget(self._run)


@dataclass(frozen=True, slots=True)
class CompiledFlow:
    """A flow that the kernel has checked against Spark; hands out the pieces of the query."""

    _spark: SparkSession
    plan: Any

    @classmethod
    def compile(cls, spark: SparkSession, spec: Mapping[str, Any]) -> CompiledFlow:
        """Check every expression of a flow; raise a HeadgateError that names the operator."""
        with translated():
            plan = kernel(spark).plan.FlowPlan.compile(spark._jsparkSession, json.dumps(spec))
        return cls(spark, plan)

    def decode(self, records: DataFrame, source: str) -> DataFrame:
        """Turn a source's records into envelopes."""
        return self._wrap(self.plan.decode(records._jdf, source))

    def start_clocks(self, run: str) -> None:
        """Have the clocks of a query follow the times that are decoded, and its sink its counts."""
        self.plan.startClocks(run)

    def timed(self, rows: DataFrame, clock: DataFrame) -> DataFrame:
        """Put a stream's clock, and Spark's watermark behind it, beside the stream's envelopes."""
        return self._wrap(self.plan.timed(rows._jdf, clock._jdf))

    def union(self, branches: Iterable[DataFrame]) -> DataFrame:
        """Put branches together, of which several may read the same source."""
        return self._wrap(self.plan.union([branch._jdf for branch in branches]))

    def operate(self, rows: DataFrame, operator: str, held: DataFrame | None) -> DataFrame:
        """Put a stateful operator behind rows.

        Args:
            held: What its state begins with: `key` and `value`; read in the first batch alone.
        """
        with translated():
            if held is None:
                return self._wrap(self.plan.operate(rows._jdf, operator))
            return self._wrap(self.plan.operate(rows._jdf, operator, held._jdf))

    def columns(self, rows: DataFrame, function: int) -> DataFrame:
        """Return the rows addressed to a function as plain columns."""
        return self._wrap(self.plan.columns(rows._jdf, function))

    def without(self, rows: DataFrame, function: int) -> DataFrame:
        """Return the rows that are not addressed to a function."""
        return self._wrap(self.plan.without(rows._jdf, function))

    def result_schema(self, function: int) -> StructType:
        """Return the schema that a function's result must have."""
        return StructType.fromJson(json.loads(self.plan.resultSchema(function)))

    def rejoin(self, made: DataFrame, function: int) -> DataFrame:
        """Send what a function made on its way."""
        return self._wrap(self.plan.rejoin(made._jdf, function))

    def _wrap(self, dataset: Any) -> DataFrame:
        return DataFrame(dataset, self._spark)


def explained(rows: DataFrame) -> str:
    """Return Spark's plan of a DataFrame as text."""
    return str(rows._jdf.queryExecution().toString())


def forget_origins(spark: SparkSession) -> None:
    """Have Hadoop's configuration no longer say where its values came from.

    Spark sends it to every stateful operator in every batch, and most of it is this.
    """
    configuration = spark._jsparkSession.sparkContext().hadoopConfiguration()
    kernel(spark).ConfigurationOrigins.forget(configuration)


def to_millis(span: timedelta) -> int:
    """Return a span of time as the JVM counts it."""
    return span // timedelta(milliseconds=1)


def kernel(spark: SparkSession) -> Any:
    """Return the kernel's package in the JVM."""
    # The attribute is there in classic mode, the only one that runs on a JVM of our own.
    return spark._jvm.io.headgate.kernel  # type: ignore[union-attr]
