"""Positions in a table that is read: the number of changes that were taken from its refreshes."""

from __future__ import annotations

import json

from headgate.connectors.broker.positions import FORMAT, unreadable
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.postgres.descriptor import Postgres


def count_between(_topic: Postgres, start: str | None, end: str | None) -> RecordCount | None:
    """Return the number of changes between two positions; None if an end is unknown."""
    if end is None:
        return None
    return RecordCount(_rows(end) - (0 if start is None else _rows(start)))


def has_reached(position: str, target: str | None) -> bool:
    """Return True if a position is at or after another; an unknown target counts as reached."""
    return target is None or _rows(position) >= _rows(target)


def find_mismatch(_topic: Postgres, _position: str, _job: str) -> None:
    """Return None: the next refresh turns what was read before into what the new table has."""


def find_mark(_topic: Postgres, _job: str) -> None:
    """Return None: a database does not store how far a job has read."""


def describe_mark(_topic: Postgres, _job: str) -> None:
    """Return None: nothing outside of the job shows its position."""


def _rows(position: str) -> int:
    on = "a table of PostgreSQL"
    try:
        content = json.loads(position)
        if content["format"] != FORMAT:
            raise unreadable(
                on, f"its format is {content['format']}, and this release reads {FORMAT}"
            )
        return int(content["rows"])
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable(on, f"it is corrupted ({error})") from error
