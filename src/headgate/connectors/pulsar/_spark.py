"""Topics on Pulsar as the kernel's source and sink read them: options, all of them text."""

from __future__ import annotations

from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.starts import kernel_start

SOURCE = "io.headgate.kernel.pulsar.PulsarSource"


def source_options(
    topic: Pulsar,
    *,
    max_batch: int,
    max_record: int,
    splits: int,
    job: str,
    start: str | None = None,
    on_data_loss: str = "fail",
    meta: bool = True,
) -> dict[str, str]:
    """Return what the source needs.

    Args:
        topic: A bound one.
        max_batch: How many bytes one batch reads at most, by estimate.
        max_record: Of a longer record, only the beginning is kept.
        splits: How many tasks read a batch at most.
        job: Whose subscription tells what happened to a topic while the job did not run.
        start: The JSON of a position, or a start as `Pulsar.start` has it, which it wins over;
            None leaves it to the topic, and `earliest` where that says nothing.
        on_data_loss: `fail` or `continue`: what to do where records are gone before being read.
        meta: Whether anybody asks for keys and properties of a stream's records.
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
        "subscription": job,
    }


def client_json(topic: Pulsar) -> str:
    """Return how the topic's cluster is reached; equal texts are one cluster."""
    return topic.client.to_text()


def output_option(output: str, topic: Pulsar, *, cluster: int, shown: int) -> dict[str, str | int]:
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
        "kind": "pulsar",
        "cluster": cluster,
        "topic": topic.full_name,
        "shown": shown,
    }


def _which(topic: Pulsar) -> dict[str, str]:
    if topic.pattern is None:
        return {"topics": topic.full_name}
    return {"pattern": topic.pattern, "namespace": topic.namespace}
