"""Positions in an embedded topic, as the reader inside Spark writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.connectors.broker.positions import FORMAT, unreadable
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.folder.ledger import LedgerEntry, read_ledger
from headgate.connectors.files.folder.records import read_lines
from headgate.connectors.files.folder.topic import TopicFolder


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The next byte to read.

    Attributes:
        file: The number of its file in the topic's ledger.
        byte: The byte in that file.
        topic: The topic's id.
    """

    file: int
    byte: int
    topic: str


def parse_position(text: str) -> Position:
    """Return a position.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    on = "embedded topics"
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise unreadable(
                on, f"its format is {content['format']}, and this release reads {FORMAT}"
            )
        return Position(int(content["file"]), int(content["byte"]), str(content["topic"]))
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable(on, f"it is corrupted ({error})") from error


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
    begin, until = (None if text is None else parse_position(text) for text in (start, end))
    if meta is None or any(at is not None and at.topic != meta.id for at in (begin, until)):
        return None
    first = 0 if begin is None else _place(entries, begin)
    last = _place(entries, until or Position(len(entries), 0, meta.id))
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


def _place(entries: Sequence[LedgerEntry], position: Position) -> int:
    """Return the number of bytes before a position in the topic as one long file."""
    if position.file >= len(entries):
        return entries[-1].start + entries[-1].size if entries else 0
    return entries[position.file].start + position.byte


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another; an unknown target counts as reached."""
    if target is None:
        return True
    at, wanted = parse_position(position), parse_position(target)
    # If the topic was recreated, none of the wanted records are left to read.
    return at.topic != wanted.topic or at >= wanted


def find_mismatch(files: Files, position: str, _job: str) -> str | None:
    """Return why a position does not hold in a topic: a moved folder keeps the topic's id."""
    meta = TopicFolder(Path(files.path)).find_meta()
    if meta is None:
        return f"folder {files.path} is not a topic that was ever read"
    if meta.id != parse_position(position).topic:
        return f"the topic in folder {files.path} has another id"
    return None


def find_mark(_topic: Files, _job: str) -> None:
    """Return None: an embedded topic does not store a job's position."""


def describe_mark(_topic: Files, _job: str) -> None:
    """Return None: nothing outside of the job shows its position."""
