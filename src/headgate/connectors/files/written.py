"""The batches that a run has written to an embedded topic, by its file names."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.connectors.files.records import read_records
from headgate.connectors.files.topic import list_files
from headgate.connectors.written import NOTHING, Answer, Batches, Writers, Written, unknown

FILE = re.compile(
    r"(?P<lineage>[0-9]{8}T[0-9]{6}-[0-9a-f]{6})-(?P<batch>[0-9]{10})-(?P<task>[0-9]{5})\.jsonl"
)


def find_written(topic: Path, writers: Writers, batches: Batches) -> Written:
    """Return what a topic's folder holds of a run's batches; no task may be writing."""
    try:
        tasks, rows, files = set(), 0, 0
        for file in list_files(topic):
            match = FILE.fullmatch(file.path.name)
            if match is None or match["lineage"] != writers.lineage:
                continue
            if batches.has(int(match["batch"])):
                files += 1
                tasks.add(match["task"])
                rows += sum(1 for _ in read_records(file.path))
    except OSError as error:
        return unknown(f"{topic} cannot be read: {error.strerror or error}")
    return Written(Answer.YES, rows=rows, tasks=len(tasks)) if files else NOTHING
