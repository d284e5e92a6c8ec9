"""Positions in an embedded topic, as the reader inside Spark writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.folder.ledger import LedgerEntry, read_ledger
from headgate.connectors.files.folder.records import read_lines
from headgate.connectors.files.folder.topic import TopicFolder


def count_between(files: Files, start: str | None, end: str | None) -> RecordCount | None:
    """Return the number of records between two positions; None if unknown.

    It is unknown if the topic was recreated since, or files were deleted.

    Args:
        start: The JSON of a position; None for the start of the topic.
        end: The JSON of a position; None for the end of the numbered files.
    """
    topic = Path(files.path)
    meta = TopicFolder(topic).find_meta()
    entries = read_ledger(topic)
    bounds = [None if entry is None else json.loads(entry) for entry in (start, end)]
    if meta is None or any(entry is not None and entry["topic"] != meta.id for entry in bounds):
        return None
    first = 0 if bounds[0] is None else _place(entries, bounds[0])
    last = _place(entries, bounds[1] or {"file": len(entries)})
    try:
        records = sum(
            1
            for entry in entries
            if entry.start < last and entry.start + entry.size > first
            for _ in read_lines(
                topic / entry.path, max(0, first - entry.start), min(entry.size, last - entry.start)
            )
        )
        return RecordCount(records)
    except FileNotFoundError:
        return None


def _place(entries: Sequence[LedgerEntry], position: dict[str, int]) -> int:
    """Return the number of bytes before a position in the topic as one long file."""
    number = position["file"]
    if number >= len(entries):
        return entries[-1].start + entries[-1].size if entries else 0
    return entries[number].start + position["byte"]


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another; an unknown target counts as reached."""
    if target is None:
        return True
    at, wanted = json.loads(position), json.loads(target)
    if at["topic"] != wanted["topic"]:
        # The topic was recreated: none of the wanted records are left to read.
        return True
    return bool((at["file"], at["byte"]) >= (wanted["file"], wanted["byte"]))


def find_mark(_topic: Files, _job: str) -> None:
    """Return None: an embedded topic does not store a job's position."""


def describe_mark(_topic: Files, _job: str) -> None:
    """Return None: nothing outside of the job shows its position."""
