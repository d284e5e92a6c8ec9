"""Embedded topics as options of the kernel's source and sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headgate.connectors.contract.connector import Reading
from headgate.connectors.contract.starts import WORDS
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.folder.topic import STAGING_FOLDER, TopicFolder
from headgate.errors import HeadgateError

SOURCE = "io.headgate.kernel.files.FilesSource"
# An embedded topic is read as one long file.
IS_PARTITIONED = False
HOLDS_LINES = True


def modules(_topic: Files) -> tuple[()]:
    """Return nothing: the core reads and writes embedded topics."""
    return ()


def source_options(topic: Files, reading: Reading) -> dict[str, str]:
    """Return the options of the source.

    Raises:
        HeadgateError: BAD_START: the start is neither a keyword nor the JSON of a position.
    """
    start = reading.start or "earliest"
    if not start.startswith("{") and start not in WORDS:
        raise HeadgateError(
            "BAD_START",
            f"cannot start reading {topic.describe()} at {start!r}: the start of an embedded "
            "topic must be earliest or latest",
            hint=f"--start {topic.name}=latest",
        )
    return {
        "path": str(_folder(topic)),
        "max.bytes": str(reading.max_batch),
        "max.record": str(reading.max_record),
        "splits": str(reading.splits),
        "start": start,
    }


def record_options(_topic: Files) -> dict[str, Any]:
    """Return nothing: a line is all that its decoder needs."""
    return {}


def output_option(topic: Files) -> dict[str, str]:
    """Return the options of the sink."""
    return {"kind": "files", "path": str(_folder(topic))}


def replaces(_topic: Files, _key: str | None) -> bool:
    """Return False: every row is a line."""
    return False


def file_spec(_topic: Files) -> None:
    """Return None: a file of a topic is a batch's."""


def prepare(topic: Files, partitions: int, lineage: str | None) -> None:
    """Create the topic if it is missing, so that a job can wait for its first file.

    An output topic gets one partition per task. Staged files left by killed tasks of this lineage
    are deleted: a job has one driver at a time, so no task is writing them.
    """
    folder = TopicFolder(_folder(topic))
    if lineage is None:
        folder.path.mkdir(parents=True, exist_ok=True)
        return
    if folder.find_meta() is None:
        folder.create(partitions)
    for left in (folder.path / STAGING_FOLDER).glob(f"{lineage}-*"):
        left.unlink(missing_ok=True)


def _folder(topic: Files) -> Path:
    return Path(topic.path).absolute()
