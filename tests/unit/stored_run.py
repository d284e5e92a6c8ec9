"""A small real checkpoint folder for tests that need no JVM.

It was made by Spark 4.3.0: two operators, two partitions each, 21 batches in three starts, and a
snapshot about every third batch. Its state is of the first form, which is refused since release
0.7; as files, all forms are alike.
"""

from __future__ import annotations

import shutil
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headgate._locations import Location
from headgate.checkpoints.manifest import CheckpointFacts, SourceFacts, StateFacts

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoint-v1.tar.gz"
LAST = 20
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def unpack(into: Path) -> Path:
    """Return Spark's folder of the stored run, unpacked."""
    with tarfile.open(FIXTURE) as archive:
        if hasattr(tarfile, "data_filter"):
            # Python knows filters from 3.11.4 on.
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(into)
    return into / "checkpoint"


def local(folder: Location) -> Path:
    """Return a folder that is on this machine."""
    assert isinstance(folder, Path)
    return folder


def copy(folder: Path, to: Path) -> Path:
    """Return a copy that shares nothing with the original."""
    shutil.copytree(folder, to)
    return to


def facts(**other: Any) -> CheckpointFacts:
    """Return facts of a checkpoint as a job would tell them."""
    told: dict[str, Any] = {
        "job": "shop",
        "lineage": "first",
        "completed_at": NOON,
        "duration": timedelta(milliseconds=250),
        "sources": {
            "orders": SourceFacts('{"file":3,"byte":0}', 12),
            "users": SourceFacts(None, 0),
        },
        "watermark": NOON - timedelta(seconds=5),
        "state": {"with-user": StateFacts(10, 2048), "with-item": StateFacts(5, 1024)},
        "parallelism": 2,
        "operators": ("with-user", "with-item"),
        "tables": {"users": [[{"name": "id", "type": "bigint", "nullable": False}]]},
        "keys": {"users": ["id"]},
        "flow": {"format": 1, "name": "shop"},
        **other,
    }
    return CheckpointFacts(**told)


def files_under(folder: Path) -> set[str]:
    """Return every file in a folder, as seen from it."""
    return {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
