"""Positions in a table that is read: the number of changes that were taken from its refreshes."""

from __future__ import annotations

import json

from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.postgres.descriptor import Postgres
from headgate.errors import Domain, HeadgateError

FORMAT = 1


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
    try:
        content = json.loads(position)
        if content["format"] == FORMAT:
            return int(content["rows"])
        problem = f"its format is {content['format']}, and this release reads {FORMAT}"
    except (ValueError, KeyError, TypeError) as error:
        problem = f"it is corrupted ({error})"
    raise HeadgateError(
        "POSITION_UNREADABLE",
        f"cannot read a position in a table of PostgreSQL: {problem}",
        hint="restore from another checkpoint: headgate checkpoints NAME",
        domain=Domain.EXTERNAL,
    )
