"""The number of messages in a range of entries: an entry holds one message, or a batch of them.

The broker counts entries. The admin API shows the metadata of an entry, among it the number of its
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.pulsar.access.admin import Admin
from headgate.connectors.pulsar.names import EntryId, topic_path
from headgate.connectors.pulsar.topics.ledgers import Ledgers, read_ledgers

# The greatest number of entries that are looked at, each with a request of some milliseconds.
MOST_LOOKS = 200
_NOT_FOUND = 404
_MESSAGES = "X-Pulsar-num-batch-message"
_CHUNK, _CHUNKS = "X-Pulsar-chunk-id", "X-Pulsar-num-chunks-from-msg"
_MARKER, _ABORTED = "X-Pulsar-marker-type", "X-Pulsar-txn-aborted"


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries of a partition.

    Attributes:
        part: The full name of the plain topic that holds the partition.
        end: The entry after the last one.
    """

    part: str
    first: EntryId
    end: EntryId


def count_messages(admin: Admin, ranges: Sequence[EntryRange]) -> RecordCount | None:
    """Return the number of messages in some ranges, or None if a part of them was deleted.

    Up to 200 entries are looked at one by one, and the number is exact. Of more entries, as many
    are looked at, evenly spread, and the number is an estimate.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    runs: list[_Run] = []
    for entry_range in ranges:
        entry_runs = _find_runs(
            entry_range, read_ledgers(entry_range.part, _stats(admin, entry_range.part))
        )
        if entry_runs is None:
            return None
        runs += entry_runs
    entries = sum(run.count for run in runs)
    looked = [_count_in(admin, part, entry) for part, entry in _spread(runs, entries)]
    known = [count for count in looked if count is not None]
    if len(known) < len(looked):
        return None
    if len(known) == entries:
        return RecordCount(sum(known))
    return RecordCount(round(entries * sum(known) / len(known)), is_estimate=True)


@dataclass(frozen=True, slots=True)
class _Run:
    """Entries of one ledger in a row."""

    part: str
    first: EntryId
    count: int


def _stats(admin: Admin, part: str) -> dict[str, object] | None:
    stats: dict[str, object] | None = admin.find(f"{topic_path(part)}/internalStats")
    return stats


def _find_runs(entries: EntryRange, kept: Ledgers) -> list[_Run] | None:
    """Return a range ledger by ledger; None if its first or its last entry is not there."""
    runs = []
    for ledger, count in kept.counts:
        first = entries.first.entry if ledger == entries.first.ledger else 0
        end = min(entries.end.entry, count) if ledger == entries.end.ledger else count
        if entries.first.ledger <= ledger <= entries.end.ledger and first < end:
            runs.append(_Run(entries.part, EntryId(ledger, first), end - first))
    ledgers = {ledger for ledger, _ in kept.counts}
    is_whole = entries.first.ledger in ledgers or entries.first.ledger < 0
    # The entry before the end is the last one of the range: the ledger after it may be gone.
    return runs if is_whole and (entries.end.ledger in ledgers or not entries.end.entry) else None


def _spread(runs: Sequence[_Run], entries: int) -> Iterator[tuple[str, EntryId]]:
    """Yield all entries, or some that are evenly spread."""
    looks = min(entries, MOST_LOOKS)
    places = [number * entries // looks for number in range(looks)]
    before = 0
    for run in runs:
        for place in places:
            if before <= place < before + run.count:
                yield run.part, EntryId(run.first.ledger, run.first.entry + place - before)
        before += run.count


def _count_in(admin: Admin, part: str, entry: EntryId) -> int | None:
    """Return the number of messages that end in an entry; None if the entry was deleted."""
    path = f"{topic_path(part)}/ledger/{entry.ledger}/entry/{entry.entry}"
    answer = admin.send("GET", path, accepts={_NOT_FOUND})
    if answer.status == _NOT_FOUND:
        return None
    headers = answer.headers
    if _MARKER in headers or headers.get(_ABORTED) == "true":
        return 0
    if int(headers.get(_CHUNK) or 0) + 1 < int(headers.get(_CHUNKS) or 1):
        return 0
    return int(headers.get(_MESSAGES) or 1)
