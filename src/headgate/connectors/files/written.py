"""The batches that runs have written to embedded topics: files are named by run, batch and task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from headgate.connectors.contract.written import (
    MAYBE_ALIVE,
    NOTHING,
    Answer,
    Batches,
    Writers,
    Written,
    unknown,
)
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.folder.records import read_records
from headgate.connectors.files.folder.topic import list_files

FILE = re.compile(
    r"(?P<lineage>[0-9]{8}T[0-9]{6}-[0-9a-f]{6})-(?P<batch>[0-9]{10})-(?P<task>[0-9]{5})\.jsonl"
)

rests_on = "files named by run, batch and task"
can_repeat = False
has_transactions = False


def end_transactions(_topic: Files, _ids: Iterable[str]) -> None:
    """Do nothing: a file is published at once."""


def find_hidden(_topic: Files, _lineage: str) -> None:
    """Return None: readers see what a batch has written."""


def find_written(
    topics: Mapping[str, Files], writers: Writers, batches: Batches
) -> dict[str, Written]:
    """Return what each topic's folder holds of a run's batches."""
    return {
        name: find_in_folder(Path(topic.path), writers, batches)
        if writers.are_gone
        else MAYBE_ALIVE
        for name, topic in topics.items()
    }


def find_in_folder(topic: Path, writers: Writers, batches: Batches) -> Written:
    """Return what a topic's folder holds of a run's batches; no task may be writing."""
    try:
        tasks, rows = set(), 0
        for file in list_files(topic):
            match = FILE.fullmatch(file.path.name)
            if match is None or match["lineage"] != writers.lineage:
                continue
            if batches.has(int(match["batch"])):
                tasks.add(match["task"])
                rows += sum(1 for _ in read_records(file.path))
    except OSError as error:
        return unknown(f"{topic} cannot be read: {error.strerror or error}")
    return Written(Answer.YES, rows=rows, tasks=len(tasks)) if tasks else NOTHING
