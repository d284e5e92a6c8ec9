"""The ends of a query: topics as options of the kernel's sources and of its one sink. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict

from headgate.connectors import Console, Files, Kafka, Pulsar
from headgate.connectors.files import _spark as files
from headgate.connectors.kafka import _spark as kafka
from headgate.connectors.pulsar import _spark as pulsar
from headgate.engine.plan import Destination, FlowPlan
from headgate.engine.settings import AttemptSettings
from headgate.errors import Domain, HeadgateError
from headgate.flow.operators import Source
from headgate.flow.topics import Topic

_WORDS = ("earliest", "latest")


def source_options(node: Source, settings: AttemptSettings) -> tuple[str, dict[str, str]]:
    """Return the class that reads a source's topic, and its options."""
    start = settings.starts.get(node.id)
    match node.topic:
        case Files() as topic:
            if start is not None and not start.startswith("{") and start not in _WORDS:
                raise _bad_start(topic, start)
            return files.SOURCE, files.source_options(
                topic,
                max_batch=settings.max_batch,
                max_record=settings.max_record,
                splits=settings.spark.parallelism,
                start=start or "earliest",
            )
        case Kafka() as topic:
            return kafka.SOURCE, kafka.source_options(
                topic,
                max_batch=settings.max_batch,
                max_record=settings.max_record,
                splits=settings.spark.parallelism,
                start=start,
                on_data_loss=settings.on_data_loss,
                meta=node.meta is not None,
            )
        case Pulsar() as topic:
            return pulsar.SOURCE, pulsar.source_options(
                topic,
                max_batch=settings.max_batch,
                max_record=settings.max_record,
                splits=settings.spark.parallelism,
                job=settings.job,
                start=start,
                on_data_loss=settings.on_data_loss,
                meta=node.meta is not None,
            )
        case topic:
            raise _unsupported(topic)


def sink_options(plan: FlowPlan, settings: AttemptSettings) -> dict[str, str]:
    """Return the options of the sink: where every output goes, and how."""
    clusters = _clusters(plan.destinations)
    outputs = [_output(each, clusters, shown=settings.shown) for each in plan.destinations]
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
        "fence": json.dumps([asdict(each) for each in settings.fenced]),
        "placed.since": str(settings.placed_since),
        "unfinished.since": str(settings.unfinished_since_ms),
    }


def count_tasks(plan: FlowPlan, parallelism: int) -> int:
    """Return how many tasks write at most: each has transactions of its own.

    Behind an operator there are as many as there are state partitions. Without one, the tasks
    that read also write, and each source has its own.
    """
    return parallelism if plan.operators else parallelism * max(1, sum(plan.scans().values()))


def _clusters(destinations: Iterable[Destination]) -> list[str]:
    """Return how each cluster is reached that is written to; a place in it is its number."""
    found = (_find_client(each.topic) for each in destinations)
    return list(dict.fromkeys(each for each in found if each is not None))


def _find_client(topic: Topic | None) -> str | None:
    """Return how the cluster of a topic is reached; None for one that is on no broker."""
    match topic:
        case Kafka():
            return kafka.client_json(topic)
        case Pulsar():
            return pulsar.client_json(topic)
        case _:
            return None


def _output(each: Destination, clusters: list[str], *, shown: int) -> dict[str, str | int]:
    match each.topic:
        case None:
            return {"id": each.id, "kind": "counted"}
        case Console(rows=rows):
            return {"id": each.id, "kind": "console", "shown": rows}
        case Files() as topic:
            return files.output_option(each.id, topic, shown=shown)
        case Kafka() as topic:
            cluster = clusters.index(kafka.client_json(topic))
            return kafka.output_option(each.id, topic, cluster=cluster, shown=shown)
        case Pulsar() as topic:
            cluster = clusters.index(pulsar.client_json(topic))
            return pulsar.output_option(each.id, topic, cluster=cluster, shown=shown)
        case topic:
            raise _unsupported(topic)


def _bad_start(topic: Files, start: str) -> HeadgateError:
    return HeadgateError(
        "BAD_START",
        f"cannot begin to read {topic.describe()} at {start!r}: embedded topics know earliest "
        "and latest",
        hint=f"--start {topic.name}=latest",
    )


def _unsupported(topic: Topic) -> HeadgateError:
    return HeadgateError(
        "TOPIC_UNBOUND",
        f"cannot run topic {topic.name!r}: no connector of this release serves {topic.describe()}",
        hint="bind it with --on files:DIR, --on kafka://HOST:9092 or --on pulsar://HOST:6650",
        domain=Domain.USER,
    )
