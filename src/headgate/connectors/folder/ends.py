"""Folders as options of the kernel's source and sink."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from headgate._units import to_millis
from headgate.connectors.contract.connector import Reading
from headgate.connectors.contract.starts import WORDS
from headgate.connectors.folder.descriptor import LINES, Folder
from headgate.connectors.folder.paths import is_address
from headgate.errors import HeadgateError
from headgate.flow.graph.codec import to_json

SOURCE = "io.headgate.kernel.folder.FolderSource"
# The files are read as one long file, in the order in which they were first seen.
IS_PARTITIONED = False
# The compression of formats that compress their own blocks.
_USUAL = {"parquet": "zstd", "orc": "zstd", "avro": "gzip"}
# Files are read and written as their format has them.
HOLDS_LINES = False


def modules(topic: Folder) -> tuple[str, ...]:
    """Return the object store that the folder is on."""
    return ("s3a",) if topic.where.startswith("s3a:") else ()


def source_options(topic: Folder, reading: Reading) -> dict[str, str]:
    """Return the options of the source.

    Raises:
        HeadgateError: BAD_START: the start is neither a keyword nor the JSON of a position.
    """
    start = reading.start or "earliest"
    if not start.startswith("{") and start not in WORDS:
        raise HeadgateError(
            "BAD_START",
            f"cannot start reading {topic.describe()} at {start!r}: the start of a folder must be "
            "earliest or latest",
            hint=f"--start {topic.name}=latest",
        )
    options = {
        "path": full_path(topic),
        "topic": topic.name,
        "format": json.dumps(to_json(topic.own_format)),
        "schema": json.dumps(reading.schema),
        "partitions": ",".join(topic.columns),
        "header": str(topic.header).lower(),
        "recursive": str(topic.recursive).lower(),
        "look.ms": _millis(topic.look_every),
        "min.age.ms": _millis(topic.min_age),
        "max.bytes": str(reading.max_batch),
        "max.record": str(reading.max_record),
        "splits": str(reading.splits),
        "start": start,
        "on.data.loss": reading.on_data_loss,
    }
    if topic.glob is not None:
        options["glob"] = topic.glob
    if reading.kept is not None:
        options["start.kept"] = reading.kept
    return options


def record_options(topic: Folder) -> dict[str, Any]:
    """Return what the decoder must know: the columns in the names of folders."""
    return {"folder": {"partitions": list(topic.columns)}}


def output_option(topic: Folder) -> dict[str, str]:
    """Return the options of the sink."""
    return {"kind": Folder.kind, "topic": topic.name}


def file_spec(topic: Folder) -> dict[str, object]:
    """Return how the kernel makes the files of an output."""
    usual = "none" if topic.own_name in LINES else _USUAL[topic.own_name]
    return {
        "partition_by": list(topic.columns),
        "compression": topic.compression or usual,
        "header": topic.header,
    }


def find_cluster(topic: Folder) -> str:
    """Return the folder, and when the kernel publishes its files, as JSON."""
    size, age = topic.rolls_at
    return json.dumps({"path": full_path(topic), "roll_size": size, "roll_age_ms": to_millis(age)})


def replaces(_topic: Folder, _key: str | None) -> bool:
    """Return False: every row is one of a file."""
    return False


def prepare(_topic: Folder, _partitions: int, _lineage: str | None) -> None:
    """Do nothing: a folder begins to exist with its first file."""


def full_path(topic: Folder) -> str:
    """Return the folder as the kernel takes it: an absolute path, or an address."""
    return topic.where if is_address(topic.where) else str(Path(topic.where).absolute())


def _millis(duration: str | timedelta) -> str:
    return str(to_millis(cast("timedelta", duration)))
