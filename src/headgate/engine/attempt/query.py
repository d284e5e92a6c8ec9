"""One flow as one streaming query: sources, functions, operators and the sink."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate._kernel.bridge import (
    CLOCK_SOURCE,
    FLOW_SINK,
    GATED_SOURCE,
    WAKE_SOURCE,
    CompiledFlow,
)
from headgate._kernel.translate import naming_failures
from headgate._locations import url_of
from headgate.connectors.registry import find_connector, get_connector
from headgate.engine.plan.clocks import clock_name, clock_options
from headgate.engine.plan.ends import sink_options, source_options
from headgate.engine.plan.flow_plan import FlowPlan, source_name
from headgate.engine.plan.wakes import WAKES, wake_options
from headgate.engine.portable.process_form import ProcessForm
from headgate.engine.portable.processes import taken_process
from headgate.engine.portable.state import TableForm, taken_rows
from headgate.engine.session.masters import is_local
from headgate.engine.settings import AttemptSettings, HeldFiles, HeldState
from headgate.engine.state.view import held_rows
from headgate.engine.user_code import functions
from headgate.engine.user_code.flow_modules import import_from, import_on_workers, import_sent
from headgate.engine.user_code.shipping import calls_python, find_spark_python, send
from headgate.flow.operators.nodes import Enrich, Label, Load, Process, Source, SourceKind
from headgate.flow.state.processes import state_schema

# The folder of the answers of async calls, beside the checkpoint of their run.
ANSWERS = "answers"


def build(
    spark: SparkSession,
    plan: FlowPlan,
    settings: AttemptSettings,
    *,
    run: str,
    near: Path | None,
) -> DataFrame:
    """Return the flow as a DataFrame of envelopes for the sink.

    Args:
        run: Identifies the gates of this query.
        near: The flow's folder, from which its functions and their workers import modules.
    """
    _share_modules(spark, plan, settings, near)
    worker = functions.worker_spec(
        settings.spark,
        near,
        check=settings.check_determinism,
        answers=settings.checkpoint.parent / ANSWERS,
    )
    flow = CompiledFlow.compile(spark, {**plan.spec, "worker": worker})
    flow.check_formats(f"cannot start job {plan.spec['job']!r}")
    sources = [node for node in plan.graph.nodes if isinstance(node, Source)]
    parts = {
        node.id: flow.decode(_read(spark, node, settings, run=run), node.id) for node in sources
    }
    flow.start_clocks(run)
    for node in plan.timed:
        clock = _clock(spark, node, plan, settings, run=run)
        parts[node.id] = flow.timed(parts[node.id], clock)
    for function in plan.functions:
        rows = reduce(DataFrame.union, (parts[part] for part in function.upstream))
        parts[function.node.id] = functions.apply(function, rows, flow)
        for part in function.upstream:
            parts[part] = flow.without(parts[part], function.address)
    wakes = _wakes(spark, plan, settings, run=run)
    if wakes is not None:
        first = next(iter(parts))
        parts[first] = flow.waking(parts[first], wakes, watermark=not plan.timed)
    # Real-time mode allows a union only before the first stateful operator.
    rows = flow.call(flow.union(parts.values()), 0)
    for stage, step in enumerate(plan.steps, start=1):
        if step in plan.operators:
            rows = flow.operate(rows, step, _held(spark, plan, settings, flow, step))
        else:
            rows = flow.rebalance(rows, step)
        rows = flow.call(rows, stage)
    return rows


def _share_modules(
    spark: SparkSession, plan: FlowPlan, settings: AttemptSettings, near: Path | None
) -> None:
    """Let the driver and the processes with tasks import the flow's modules."""
    if near is not None:
        import_from(near)
    if is_local(settings.spark.master):
        if near is not None:
            import_on_workers(spark, near)
    elif calls_python(plan.graph):
        send(spark, settings.spark, near)
        import_sent(spark, find_spark_python(settings.spark))


def start(
    rows: DataFrame, plan: FlowPlan, settings: AttemptSettings, *, run: str
) -> StreamingQuery:
    """Start the query; it runs until its gate ends it or it fails."""
    every = round(settings.batch_every.total_seconds() * 1000)
    writer = (
        rows.writeStream.format(FLOW_SINK)
        .queryName(settings.job)
        .options(run=run, **sink_options(plan, settings))
        .option("checkpointLocation", url_of(settings.checkpoint))
        .outputMode("update")
        .trigger(processingTime=f"{every} milliseconds")
    )
    with naming_failures(f"cannot start job {settings.job!r}"):
        return writer.start()


def _read(spark: SparkSession, node: Source, settings: AttemptSettings, *, run: str) -> DataFrame:
    inner, options = source_options(node, settings)
    gate = {
        "gate": run,
        "gate.source": node.id,
        "gate.role": _role(node, settings),
        "gate.inner": inner,
    }
    reader = spark.readStream.format(GATED_SOURCE).name(source_name(node.id))
    return reader.options(**options, **gate).load()


def _clock(
    spark: SparkSession, node: Source, plan: FlowPlan, settings: AttemptSettings, *, run: str
) -> DataFrame:
    options = clock_options(
        node,
        plan.nudge,
        watermark_ms=settings.watermark_ms,
        reached=settings.times,
        partitions=settings.partition_times.get(node.id, {}),
    )
    reader = spark.readStream.format(CLOCK_SOURCE).name(clock_name(node.id))
    return reader.options(gate=run, **options).load()


def _wakes(
    spark: SparkSession, plan: FlowPlan, settings: AttemptSettings, *, run: str
) -> DataFrame | None:
    options = wake_options(plan.spec["operators"], takes_over=bool(settings.held))
    if options is None:
        return None
    return spark.readStream.format(WAKE_SOURCE).name(WAKES).options(gate=run, **options).load()


def _held(
    spark: SparkSession, plan: FlowPlan, settings: AttemptSettings, flow: CompiledFlow, uid: str
) -> DataFrame | None:
    held = settings.held.get(uid)
    node = plan.graph.node(uid)
    if isinstance(held, HeldFiles) and isinstance(node, Process):
        history = settings.history.get(uid, (state_schema(node),))
        return taken_process(spark, held, ProcessForm.of(node, history), flow, uid=uid)
    if isinstance(held, HeldFiles) and isinstance(node, Enrich | Label):
        table = next(source for source in plan.graph.tables() if source.id == node.table)
        history = tuple(settings.history.get(table.id, (table.schema,)))
        return taken_rows(spark, held, TableForm(history, table.key), uid=uid)
    return held_rows(spark, held) if isinstance(held, HeldState) else None


def prepare_topics(plan: FlowPlan, settings: AttemptSettings) -> None:
    """Create the embedded topics that are missing, before the query starts."""
    parallelism = settings.spark.parallelism
    for node in plan.graph.nodes:
        if isinstance(node, Source):
            get_connector(node.topic).spark.prepare(node.topic, parallelism, None)
    for destination in plan.destinations:
        connector = find_connector(destination.topic)
        if connector is not None:
            connector.spark.prepare(destination.topic, parallelism, settings.lineage)


def _role(node: Source, settings: AttemptSettings) -> str:
    if node.kind is SourceKind.STREAM:
        return "stream"
    first = node.load is Load.FIRST and node.id not in settings.loaded
    return "table-first" if first else "table"
