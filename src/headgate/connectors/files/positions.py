"""Positions in an embedded topic, as the reader inside Spark writes them, measured from outside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.ledger import LedgerEntry, read_ledger
from headgate.connectors.files.topic import TopicFolder


def count_between(files: Files, start: str | None, end: str | None) -> int | None:
    """Return how many records begin between two positions; None where that cannot be told.

    It cannot where the topic was made anew since, or files are gone.

    Args:
        start: A position's JSON; None for the topic's beginning.
        end: Likewise; None for the end of what has been numbered.
    """
    topic = Path(files.path)
    meta = TopicFolder(topic).find_meta()
    entries = read_ledger(topic)
    bounds = [None if each is None else json.loads(each) for each in (start, end)]
    if meta is None or any(each is not None and each["topic"] != meta.id for each in bounds):
        return None
    first = 0 if bounds[0] is None else _place(entries, bounds[0])
    last = (
        (entries[-1].start + entries[-1].size if entries else 0)
        if bounds[1] is None
        else (_place(entries, bounds[1]))
    )
    try:
        return sum(
            _count(topic / each.path, max(0, first - each.start), min(each.size, last - each.start))
            for each in entries
            if each.start < last and each.start + each.size > first
        )
    except FileNotFoundError:
        return None


def _place(entries: Sequence[LedgerEntry], position: dict[str, int]) -> int:
    number = position["file"]
    if number >= len(entries):
        return entries[-1].start + entries[-1].size if entries else 0
    return entries[number].start + position["byte"]


def _count(file: Path, start: int, end: int) -> int:
    """Return how many lines with something in them begin in a range of bytes."""
    with file.open("rb") as content:
        if start > 0:
            # A line belongs to the range it begins in.
            content.seek(start - 1)
            content.readline()
        count = 0
        while content.tell() < end:
            line = content.readline()
            if not line:
                break
            count += bool(line.strip())
        return count


def has_reached(position: str, target: str | None) -> bool:
    """Tell whether a position lies at or behind another; one that is not known is no hurdle."""
    if target is None:
        return True
    at, wanted = json.loads(position), json.loads(target)
    if at["topic"] != wanted["topic"]:
        # The topic was made anew: nothing of what was wanted is left to read.
        return True
    return bool((at["file"], at["byte"]) >= (wanted["file"], wanted["byte"]))


def find_mark(_topic: Files, _job: str) -> None:
    """Return None: an embedded topic has no place for the position of a job."""
