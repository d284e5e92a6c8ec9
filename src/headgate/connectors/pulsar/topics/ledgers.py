"""The ledgers of a partition, from the internal statistics of the admin API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.connectors.pulsar.names import BEGINNING, EntryId


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The retained entries of a partition.

    Attributes:
        part: The full name of the plain topic that holds the partition.
        counts: The number of entries of each ledger by id, oldest first.
        end: The next entry.
        size: In bytes.
        cursors: The names of its cursors.
    """

    part: str
    counts: tuple[tuple[int, int], ...] = ()
    end: EntryId = BEGINNING
    size: int = 0
    cursors: frozenset[str] = frozenset()

    @property
    def entries(self) -> int:
        """The number of entries."""
        return sum(count for _, count in self.counts)

    @property
    def first(self) -> EntryId:
        """The earliest retained entry; the next entry if there is none."""
        return next((EntryId(ledger, 0) for ledger, count in self.counts if count), self.end)

    @property
    def last(self) -> EntryId | None:
        """The newest entry; None if there is none."""
        kept = [EntryId(ledger, count - 1) for ledger, count in self.counts if count]
        return kept[-1] if kept else None

    def back(self, entries: int) -> EntryId:
        """Return the first of the last entries, or the earliest if there are fewer."""
        left = entries
        for ledger, count in reversed(self.counts):
            if left <= count and left:
                return EntryId(ledger, count - left)
            left -= count
        return self.first


def read_ledgers(part: str, stats: Mapping[str, Any] | None) -> Ledgers:
    """Return the ledgers in internal statistics; None if the partition does not exist yet."""
    if stats is None:
        return Ledgers(part)
    counts = [(page["ledgerId"], page["entries"]) for page in stats["ledgers"]]
    if counts and not counts[-1][1]:
        # The open ledger does not report its own count.
        counts[-1] = (counts[-1][0], stats["currentLedgerEntries"])
    ledger, _, entry = str(stats["lastConfirmedEntry"]).partition(":")
    return Ledgers(
        part,
        counts=tuple(counts),
        end=EntryId(int(ledger), int(entry) + 1),
        size=stats["totalSize"],
        cursors=frozenset(stats.get("cursors", ())),
    )
