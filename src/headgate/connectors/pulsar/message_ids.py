"""The position of an entry in a partition on Pulsar: the ledger, and the entry in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"(-1|[0-9]{1,19}):([0-9]{1,19})")
# Both are signed 64-bit integers.
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True, order=True)
class EntryId:
    """An entry, which holds one message or a batch. Later entries are greater.

    Attributes:
        ledger: -1 in a partition without known entries.
        entry: Counts from 0 in each ledger.
    """

    ledger: int
    entry: int

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


BEGINNING = EntryId(-1, 0)


def find_entry_id(text: object) -> EntryId | None:
    """Return the entry that `ledger:entry` names, or None for another text."""
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if match is None or max(int(match[1]), int(match[2])) >= _LIMIT:
        return None
    return EntryId(int(match[1]), int(match[2]))
