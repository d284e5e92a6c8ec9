"""Topics on Kafka as the kernel's source and sink read them: options, all of them text."""

from __future__ import annotations

from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.kafka.starts import kernel_start

SOURCE = "io.headgate.kernel.kafka.KafkaSource"


def source_options(
    topic: Kafka,
    *,
    max_batch: int,
    max_record: int,
    splits: int,
    start: str | None = None,
    on_data_loss: str = "fail",
    meta: bool = True,
) -> dict[str, str]:
    """Return what the source needs.

    Args:
        topic: A bound one.
        max_batch: How many bytes one batch reads at most, unless one record alone is larger.
        max_record: Of a longer record, only the beginning is kept.
        splits: How many tasks read a batch at most.
        start: The JSON of a position, or a start as `Kafka.start` has it, which it wins over;
            None leaves it to the topic, and `earliest` where that says nothing.
        meta: Whether anybody asks for keys and headers of a stream's records.
        on_data_loss: `fail` or `continue`: what to do where records are gone before being read.
    """
    return {
        "client": client_json(topic),
        **_which(topic),
        "start": kernel_start(start or topic.start_text or "earliest"),
        "max.bytes": str(max_batch),
        "max.record": str(max_record),
        "splits": str(splits),
        "on.data.loss": on_data_loss,
        "meta": str(meta).lower(),
        "isolation": _isolation(topic),
    }


def client_json(topic: Kafka) -> str:
    """Return how the topic's cluster is reached; equal texts are one cluster."""
    return topic.client.to_text()


def output_option(output: str, topic: Kafka, *, cluster: int, shown: int) -> dict[str, str | int]:
    """Return one entry of the sink's list of outputs.

    Args:
        output: The output's id in the flow.
        topic: A bound one.
        cluster: The place of its client in the sink's list of clusters.
        shown: How many of its rows are shown.

    Raises:
        HeadgateError: BAD_TOPIC: the topic stands for a pattern.
    """
    topic.check_writable()
    return {
        "id": output,
        "kind": "kafka",
        "cluster": cluster,
        "topic": topic.name,
        "shown": shown,
    }


def _which(topic: Kafka) -> dict[str, str]:
    return {"topics": topic.name} if topic.pattern is None else {"pattern": topic.pattern}


def _isolation(topic: Kafka) -> str:
    for name in ("consumer.isolation.level", "isolation.level"):
        if name in topic.options:
            return topic.options[name]
    return "read_committed"
