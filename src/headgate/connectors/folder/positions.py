"""Positions in a folder, as the reader inside Spark writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from headgate.connectors.broker.positions import FORMAT, unreadable
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.folder.descriptor import Folder


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the files of a folder, as a ledger numbers them.

    Attributes:
        ledger: The ledger's id.
        file: The number of the file that is read next.
        byte: Where in it.
    """

    ledger: str
    file: int
    byte: int


def parse_position(text: str) -> Position:
    """Return a position.

    Raises:
        HeadgateError: POSITION_UNREADABLE.
    """
    on = "a folder"
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise unreadable(
                on, f"its format is {content['format']}, and this release reads {FORMAT}"
            )
        return Position(str(content["ledger"]), int(content["file"]), int(content["byte"]))
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable(on, f"it is corrupted ({error})") from error


def count_between(_topic: Folder, start: str | None, end: str | None) -> RecordCount | None:
    """Return the number of records between two positions; None if unknown.

    The numbers of files are in the job's checkpoint, which the folder does not know: only a
    difference of nothing can be told.
    """
    begin, until = (None if text is None else parse_position(text) for text in (start, end))
    return RecordCount(0) if begin is not None and begin == until else None


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another; an unknown target counts as reached."""
    if target is None:
        return True
    at, wanted = parse_position(position), parse_position(target)
    # Numbers of another ledger mean other files.
    return at.ledger != wanted.ledger or (at.file, at.byte) >= (wanted.file, wanted.byte)


def find_mismatch(topic: Folder, _position: str, _job: str) -> str:
    """Return why a position holds in no other folder: a file is known by its name there."""
    return f"a file of {topic.where} with the name of one that was read would be left out"


def find_mark(_topic: Folder, _job: str) -> None:
    """Return None: a folder does not store a job's position."""


def describe_mark(_topic: Folder, _job: str) -> None:
    """Return None: nothing outside of the job shows its position."""
