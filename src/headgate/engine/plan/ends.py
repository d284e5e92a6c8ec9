"""The ends of a query: topics as options of the kernel's sources and of its one sink. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from headgate.connectors import Console
from headgate.connectors.contract.connector import Reading
from headgate.connectors.registry import clusters_of, get_connector
from headgate.engine.plan.flow_plan import Destination, FlowPlan
from headgate.engine.plan.spark_types import to_spark_json
from headgate.engine.settings import AttemptSettings
from headgate.flow.formats.changes import Debezium
from headgate.flow.operators.nodes import Source

_NOTHING: Mapping[int, str] = {}


def source_options(node: Source, settings: AttemptSettings) -> tuple[str, dict[str, str]]:
    """Return the class that reads a source's topic, and its options."""
    spark = get_connector(node.topic).spark
    reading = Reading(
        job=settings.job,
        max_batch=settings.max_batch,
        max_record=settings.max_record,
        splits=settings.spark.parallelism,
        start=settings.starts.get(node.id),
        on_data_loss=settings.on_data_loss,
        # A deletion may say by its message key alone which row it ends.
        meta=node.meta is not None or isinstance(node.format, Debezium),
        schema=to_spark_json(node.schema),
        key=node.key,
        kept=settings.kept.get(node.id),
    )
    return spark.SOURCE, spark.source_options(node.topic, reading)


def sink_options(
    plan: FlowPlan, settings: AttemptSettings, written: Mapping[int, str] = _NOTHING
) -> dict[str, str]:
    """Return the options of the sink: the place and format of every output.

    Args:
        written: The columns of outputs that write objects, as Spark's JSON, by their address.
    """
    # The index of a cluster is its number in the outputs.
    topics = (entry.topic for entry in plan.destinations)
    clusters = list(clusters_of(topic for topic in topics if topic is not None))
    keys = {node.id: node.key for node in plan.graph.outputs()}
    outputs = [
        {
            **_output(entry, clusters, shown=settings.shown),
            **_rows(written.get(address), keys.get(entry.id)),
        }
        for address, entry in enumerate(plan.destinations)
    ]
    return {
        "job": settings.job,
        "lineage": settings.lineage,
        "outputs": json.dumps(outputs),
        "clusters": json.dumps(
            [
                {"client": json.loads(client), "delivery": settings.delivery.value}
                for client in clusters
            ]
        ),
        "sources": json.dumps([source["id"] for source in plan.spec["sources"]]),
        "tasks": str(count_tasks(plan, settings.spark.parallelism)),
        "fence": json.dumps([asdict(entry) for entry in settings.fenced]),
        "placed.since": str(settings.placed_since),
        "unfinished.since": str(settings.unfinished_since_ms),
    }


def count_tasks(plan: FlowPlan, parallelism: int) -> int:
    """Return the maximum number of writing tasks; each has transactions of its own.

    After an operator with state, a rebalance or a shuffle by key this is the number of state
    partitions. Without one, the reading tasks also write, and each source has its own.
    """
    return (
        parallelism
        if plan.steps or plan.by_key
        else parallelism * max(1, sum(plan.scans().values()))
    )


def _rows(columns: str | None, key: str | None) -> dict[str, str | None]:
    return {} if columns is None else {"columns": columns, "key": key}


def _output(destination: Destination, clusters: list[str], *, shown: int) -> dict[str, str | int]:
    match destination.topic:
        case None:
            return {"id": destination.id, "kind": "counted"}
        case Console(rows=rows):
            return {"id": destination.id, "kind": "console", "shown": rows}
        case topic:
            connector = get_connector(topic)
            where = connector.spark.output_option(topic)
            cluster = connector.find_cluster(topic)
            number = {} if cluster is None else {"cluster": clusters.index(cluster)}
            return {"id": destination.id, **where, **number, "shown": shown}
