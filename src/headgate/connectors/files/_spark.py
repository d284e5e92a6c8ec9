"""Embedded topics as the kernel's source and sink read them: options, all of them text."""

from __future__ import annotations

from pathlib import Path

from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.topic import STAGING_FOLDER, TopicFolder

SOURCE = "io.headgate.kernel.files.FilesSource"


def source_options(
    topic: Files, *, max_batch: int, max_record: int, splits: int, start: str = "earliest"
) -> dict[str, str]:
    """Return what the source needs.

    Args:
        topic: A bound one.
        max_batch: How many bytes one batch reads at most.
        max_record: Of a longer record, only the beginning is kept.
        splits: How many tasks read a batch.
        start: `earliest`, `latest`, or the JSON of a position.
    """
    return {
        "path": str(_folder(topic)),
        "max.bytes": str(max_batch),
        "max.record": str(max_record),
        "splits": str(splits),
        "start": start,
    }


def output_option(output: str, topic: Files, *, shown: int) -> dict[str, str | int]:
    """Return one entry of the sink's list of outputs."""
    return {"id": output, "kind": "files", "path": str(_folder(topic)), "shown": shown}


def prepare_source(topic: Files) -> None:
    """Make the topic's folder if it is not there, so that a job may wait for its first file."""
    _folder(topic).mkdir(parents=True, exist_ok=True)


def prepare_output(topic: Files, *, partitions: int, lineage: str) -> None:
    """Make the topic if it is not there, with a partition for each task that writes.

    What tasks of this lineage left in the making when they were killed is removed; one driver of
    a job runs at a time, so nobody is writing it.
    """
    folder = TopicFolder(_folder(topic))
    if folder.find_meta() is None:
        folder.create(partitions)
    for left in (folder.path / STAGING_FOLDER).glob(f"{lineage}-*"):
        left.unlink(missing_ok=True)


def _folder(topic: Files) -> Path:
    return Path(topic.path).absolute()
