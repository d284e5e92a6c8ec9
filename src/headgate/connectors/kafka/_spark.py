"""Topics on Kafka as options of the kernel's source and sink."""

from __future__ import annotations

from headgate.connectors.connector import Reading
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.kafka.starts import STARTS
from headgate.connectors.patterns import check_writable

SOURCE = "io.headgate.kernel.kafka.KafkaSource"
IS_PARTITIONED = True


def source_options(topic: Kafka, reading: Reading) -> dict[str, str]:
    """Return the options of the source."""
    return {
        "client": topic.client.to_text(),
        **_which(topic),
        "start": STARTS.kernel_start(reading.start or topic.start_text or "earliest"),
        "max.bytes": str(reading.max_batch),
        "max.record": str(reading.max_record),
        "splits": str(reading.splits),
        "on.data.loss": reading.on_data_loss,
        "meta": str(reading.meta).lower(),
        "isolation": _isolation(topic),
    }


def output_option(topic: Kafka) -> dict[str, str]:
    """Return the options of the sink.

    Raises:
        HeadgateError: BAD_TOPIC: the topic is a pattern.
    """
    check_writable(topic, instead=f"Kafka({topic.name!r}, servers={topic.servers!r})")
    return {"kind": "kafka", "topic": topic.name}


def prepare(_topic: Kafka, _partitions: int, _lineage: str | None) -> None:
    """Do nothing: the kernel, the broker or `headgate setup` creates topics."""


def _which(topic: Kafka) -> dict[str, str]:
    return {"topics": topic.name} if topic.pattern is None else {"pattern": topic.pattern}


def _isolation(topic: Kafka) -> str:
    for name in ("consumer.isolation.level", "isolation.level"):
        if name in topic.options:
            return topic.options[name]
    return "read_committed"
