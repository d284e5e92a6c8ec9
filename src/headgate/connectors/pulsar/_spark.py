"""Topics on Pulsar as options of the kernel's source and sink."""

from __future__ import annotations

from headgate.connectors.connector import Reading
from headgate.connectors.patterns import check_writable
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.starts import STARTS

SOURCE = "io.headgate.kernel.pulsar.PulsarSource"
IS_PARTITIONED = True


def source_options(topic: Pulsar, reading: Reading) -> dict[str, str]:
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
        "subscription": reading.job,
    }


def output_option(topic: Pulsar) -> dict[str, str]:
    """Return the options of the sink.

    Raises:
        HeadgateError: BAD_TOPIC: the topic is a pattern.
    """
    check_writable(topic, instead=f"Pulsar({topic.name!r}, service={topic.service!r})")
    return {"kind": "pulsar", "topic": topic.full_name}


def prepare(_topic: Pulsar, _partitions: int, _lineage: str | None) -> None:
    """Do nothing: the kernel, the broker or `headgate setup` creates topics."""


def _which(topic: Pulsar) -> dict[str, str]:
    if topic.pattern is None:
        return {"topics": topic.full_name}
    return {"pattern": topic.pattern, "namespace": topic.namespace}
