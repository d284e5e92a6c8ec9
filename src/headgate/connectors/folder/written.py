"""The batches that runs have written to folders: staged in hidden files, or published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from headgate._locations import parse_location
from headgate.connectors.contract.written import (
    MAYBE_ALIVE,
    NOTHING,
    Answer,
    Batches,
    Hidden,
    Writers,
    Written,
    unknown,
)
from headgate.connectors.folder.descriptor import Folder
from headgate.connectors.folder.ends import full_path
from headgate.connectors.folder.staged import HIDDEN, find_published, list_staged

rests_on = "staged files named by run, batch and task, each published once"
can_repeat = False
has_transactions = False


def end_transactions(_topic: Folder, _ids: Iterable[str]) -> None:
    """Do nothing: a file is published at once."""


def find_hidden(topic: Folder, lineage: str) -> Hidden | None:
    """Return the rows of a run that are staged, and in no visible file yet."""
    folder = parse_location(full_path(topic)) / HIDDEN / lineage
    published = find_published(folder)
    files = [file for file in list_staged(folder) if published is None or file.batch > published]
    if not files:
        return None
    return Hidden(
        rows=sum(file.rows for file in files),
        size=sum(file.size for file in files),
        since=datetime.fromtimestamp(min(file.since for file in files), UTC),
    )


def find_written(
    topics: Mapping[str, Folder], writers: Writers, batches: Batches
) -> dict[str, Written]:
    """Return what each folder holds of a run's batches."""
    return {
        name: _find(topic, writers.lineage, batches) if writers.are_gone else MAYBE_ALIVE
        for name, topic in topics.items()
    }


def _find(topic: Folder, lineage: str, batches: Batches) -> Written:
    try:
        folder = parse_location(full_path(topic)) / HIDDEN / lineage
        published = find_published(folder)
        if published is not None and batches.first <= published:
            return unknown("files with rows of several batches are published")
        staged = [file for file in list_staged(folder) if batches.has(file.batch)]
    except OSError as error:
        return unknown(f"{topic.where} cannot be read: {error.strerror or error}")
    if not staged:
        return NOTHING
    return Written(
        Answer.YES,
        rows=sum(file.rows for file in staged),
        tasks=len({file.task for file in staged}),
    )
