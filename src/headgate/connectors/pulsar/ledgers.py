"""The ledgers of a partition, as the admin API's internal statistics tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.connectors.pulsar.message_ids import BEGINNING, EntryId


@dataclass(frozen=True, slots=True)
class Ledgers:
    """What a partition keeps.

    Attributes:
        counts: How many entries each ledger has, by its id, oldest first.
        end: The entry that comes next.
        size: In bytes.
        cursors: The names of its cursors.
    """

    counts: tuple[tuple[int, int], ...]
    end: EntryId
    size: int
    cursors: frozenset[str]

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return sum(count for _, count in self.counts)

    @property
    def first(self) -> EntryId:
        """The earliest entry that is kept; where the next one comes if there is none."""
        return next((EntryId(ledger, 0) for ledger, count in self.counts if count), self.end)

    @property
    def last(self) -> EntryId | None:
        """The newest entry; None if there is none."""
        kept = [EntryId(ledger, count - 1) for ledger, count in self.counts if count]
        return kept[-1] if kept else None

    def back(self, entries: int) -> EntryId:
        """Return the entry from which so many are left, or the earliest where there are fewer."""
        left = entries
        for ledger, count in reversed(self.counts):
            if left <= count and left:
                return EntryId(ledger, count - left)
            left -= count
        return self.first


# Of a partition that is not there yet.
EMPTY = Ledgers((), BEGINNING, 0, frozenset())


def read_ledgers(stats: Mapping[str, Any]) -> Ledgers:
    """Return the ledgers that internal statistics tell of."""
    told = [(each["ledgerId"], each["entries"]) for each in stats["ledgers"]]
    if told and not told[-1][1]:
        # The one that is written says nothing of itself.
        told[-1] = (told[-1][0], stats["currentLedgerEntries"])
    ledger, _, entry = str(stats["lastConfirmedEntry"]).partition(":")
    return Ledgers(
        counts=tuple(told),
        end=EntryId(int(ledger), int(entry) + 1),
        size=stats["totalSize"],
        cursors=frozenset(stats.get("cursors", ())),
    )
