"""The kernel's interface in Python: the only place that calls into the JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate._kernel.translate import naming_failures, translated
from headgate._units import to_millis

GATED_SOURCE = "io.headgate.kernel.gate.GatedSource"
CLOCK_SOURCE = "io.headgate.kernel.time.ClockSource"
WAKE_SOURCE = "io.headgate.kernel.process.WakeSource"
FLOW_SINK = "io.headgate.kernel.sink.FlowSink"


class Gate:
    """Orders for a query's gates. They take effect before the next batch, from any thread."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        self._run = run
        self._class = kernel(spark).gate.Gatekeeper
        self._clocks = kernel(spark).time.Clocks
        self._wakes = kernel(spark).process.WakeSource
        self._keeper = self._class.of(run)

    def open(self) -> None:
        """Allow batches."""
        self._keeper.open()

    def hold(self) -> None:
        """Hold the next batch until the gate is opened."""
        self._keeper.hold()

    def stop(self) -> None:
        """End the query before its next batch."""
        self._keeper.stop()

    def stop_when_caught_up(self) -> None:
        """End the query after reading all records that existed at its start."""
        self._keeper.untilCaughtUp()

    def drain(self) -> None:
        """End the query likewise, and end event time first, so that every window is closed."""
        self._keeper.drain()

    def finish_drain(self) -> None:
        """Finish a drain that an earlier query began: read no more, and close every window."""
        self._keeper.finishDrain()

    def set_min_pause(self, pause: timedelta) -> None:
        """Set the minimum time between the end of a batch and the next one."""
        self._keeper.minPause(to_millis(pause))

    def is_loading(self) -> bool:
        """Return True while streams wait for tables to load."""
        return bool(self._keeper.isLoading())

    def forget(self) -> None:
        """Delete the gates of a query that has ended."""
        self._clocks.forget(self._run)
        self._wakes.forget(self._run)
        self._class.forget(self._run)


class Lease:
    """The right of this driver to write a checkpoint on an object store, renewed by the JVM."""

    def __init__(self, lease: Any) -> None:
        self._lease = lease

    @classmethod
    def take(
        cls, spark: SparkSession, place: str, checkpoint: str, *, holder: str, expires: timedelta
    ) -> Lease:
        """Take the lease of a checkpoint.

        Args:
            place: The address of its claims.
            checkpoint: The checkpoint's address.
            holder: Equal for drivers of which only one can be alive.
            expires: The time after which it ends if it is not renewed.
        """
        taken = kernel(spark).checkpoint.Lease.take(
            spark._jsparkSession, place, checkpoint, holder, to_millis(expires)
        )
        return cls(taken)

    def release(self) -> None:
        """End the lease, so that the next driver need not wait; nothing happens if it was lost."""
        self._lease.release()


class Feeds:
    """Reports of a running query; each is returned once."""

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
        """Wait until all reports of an ended query have arrived, at most this long."""
        self._progress.awaitEnd(round(seconds * 1000))

    def rows(self) -> list[tuple[str, str]]:
        """Return rows for the terminal since the last call: pairs of output and JSON text."""
        return [(pair[0], pair[1]) for pair in json.loads(self._rows.drain())]

    def events(self) -> list[tuple[str, str, str]]:
        """Return the events of topics since the last call: kind, source and message."""
        return [(event[0], event[1], event[2]) for event in json.loads(self._events.drain())]

    def close(self) -> None:
        """Stop listening."""
        self._streams.removeListener(self._progress)
        self._event_class.forget(self._run)
        self._sink_class.forget(self._run)
        self._row_class.forget(self._run)


@dataclass(frozen=True, slots=True)
class CompiledFlow:
    """A flow that the kernel has compiled against Spark; provides the parts of the query."""

    _spark: SparkSession
    plan: Any

    @classmethod
    def compile(cls, spark: SparkSession, spec: Mapping[str, Any]) -> CompiledFlow:
        """Check every expression of a flow; an error names the operator."""
        with translated():
            plan = kernel(spark).plan.FlowPlan.compile(spark._jsparkSession, json.dumps(spec))
        return cls(spark, plan)

    def check_formats(self, what: str) -> None:
        """Compare the flow with schema registries, and register what its outputs write.

        Args:
            what: What could not be done, for the errors of a registry.
        """
        with naming_failures(what), translated():
            self.plan.checkFormats()

    def decode(self, records: DataFrame, source: str) -> DataFrame:
        """Turn a source's records into envelopes."""
        return self._wrap(self.plan.decode(records._jdf, source))

    def start_clocks(self, run: str) -> None:
        """Connect the clocks, wakes and sink of a query to what its tasks report."""
        self.plan.startClocks(run)

    def timed(self, rows: DataFrame, clock: DataFrame) -> DataFrame:
        """Add a stream's clock, and Spark's watermark, to the stream's envelopes."""
        return self._wrap(self.plan.timed(rows._jdf, clock._jdf))

    def waking(self, rows: DataFrame, wakes: DataFrame, *, watermark: bool) -> DataFrame:
        """Add the rows that wake process operators, and Spark's watermark if no clock has it."""
        return self._wrap(self.plan.waking(rows._jdf, wakes._jdf, watermark))

    def union(self, branches: Iterable[DataFrame]) -> DataFrame:
        """Combine branches, several of which may read the same source."""
        return self._wrap(self.plan.union([branch._jdf for branch in branches]))

    def operate(self, rows: DataFrame, operator: str, held: DataFrame | None) -> DataFrame:
        """Apply a stateful operator to rows.

        Args:
            held: Its initial state, `key` and `value`; read only in the first batch.
        """
        with translated():
            if held is None:
                return self._wrap(self.plan.operate(rows._jdf, operator))
            return self._wrap(self.plan.operate(rows._jdf, operator, held._jdf))

    def rebalance(self, rows: DataFrame, step: str) -> DataFrame:
        """Spread the rows addressed to a rebalance over all tasks."""
        return self._wrap(self.plan.rebalance(rows._jdf, step))

    def call(self, rows: DataFrame, stage: int) -> DataFrame:
        """Call the Python functions behind so many stateful operators."""
        return self._wrap(self.plan.call(rows._jdf, stage))

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
        """Return a function's results as envelopes."""
        return self._wrap(self.plan.rejoin(made._jdf, function))

    def _wrap(self, dataset: Any) -> DataFrame:
        return DataFrame(dataset, self._spark)


def explained(rows: DataFrame) -> str:
    """Return Spark's plan of a DataFrame as text."""
    return str(rows._jdf.queryExecution().toString())


def create_session(conf: Mapping[str, str]) -> SparkSession:
    """Return the session of this process, made in its JVM if there is none yet."""
    context = SparkContext.getOrCreate(SparkConf().setAll(list(conf.items())))
    extensions = context._jvm.io.headgate.kernel.SessionExtensions  # type: ignore[union-attr]
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    extensions.hide()
    try:
        spark = builder.getOrCreate()
    finally:
        extensions.show()
    _forget_origins(spark)
    return spark


def _forget_origins(spark: SparkSession) -> None:
    """Remove the origin of values from Hadoop's configuration.

    Spark sends the configuration to every stateful operator in every batch, and most of it is
    origins.
    """
    configuration = spark._jsparkSession.sparkContext().hadoopConfiguration()
    kernel(spark).ConfigurationOrigins.forget(configuration)


def kernel(spark: SparkSession) -> Any:
    """Return the kernel's package in the JVM."""
    # The attribute exists in classic mode, the only one with a JVM of our own.
    return spark._jvm.io.headgate.kernel  # type: ignore[union-attr]
