"""Positions in a folder, as the reader inside Spark writes them."""

from __future__ import annotations

import json

from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.folder.descriptor import Folder


def count_between(_topic: Folder, start: str | None, end: str | None) -> RecordCount | None:
    """Return the number of records between two positions; None if unknown.

    The numbers of files are in the job's checkpoint, which the folder does not know: only a
    difference of nothing can be told.
    """
    return RecordCount(0) if start is not None and start == end else None


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another; an unknown target counts as reached."""
    if target is None:
        return True
    at, wanted = json.loads(position), json.loads(target)
    if at["ledger"] != wanted["ledger"]:
        # Numbers of another ledger mean other files.
        return True
    return bool((at["file"], at["byte"]) >= (wanted["file"], wanted["byte"]))


def find_mismatch(topic: Folder, _position: str, _job: str) -> str:
    """Return why a position holds in no other folder: a file is known by its name there."""
    return f"a file of {topic.where} with the name of one that was read would be left out"


def find_mark(_topic: Folder, _job: str) -> None:
    """Return None: a folder does not store a job's position."""


def describe_mark(_topic: Folder, _job: str) -> None:
    """Return None: nothing outside of the job shows its position."""
