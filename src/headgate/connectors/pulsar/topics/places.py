"""The records of a topic on Pulsar by place: partition, ledger, entry, index in a batch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headgate.connectors.contract.places import PlacedRecord, Send, Spot, Stretch
from headgate.connectors.pulsar.access.clients import open_client
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.failures import explain
from headgate.connectors.pulsar.names import EntryId
from headgate.connectors.pulsar.topics import records
from headgate.connectors.pulsar.topics.ledgers import Ledgers
from headgate.connectors.pulsar.topics.namespaces import Namespace
from headgate.connectors.pulsar.topics.producing import (
    DELIVERY_S,
    Replies,
    close_quietly,
    open_producers,
)
from headgate.connectors.pulsar.topics.records import Record, read_ranges

# How the kernel maps a message's place to one number (Lane.java): excess bits are cut off.
_LEDGER_BITS = 19
_ENTRY_BITS = 24
_INDEX_BITS = 20

_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,18}):([0-9]{1,18})(?::([0-9]{1,9}))?")
# Skipping this many entries takes about as long as a second reader needs to start.
_GAP = 200
_TUNING = {"send_timeout_millis": round(DELIVERY_S * 1000)}

Range = tuple[int, str, EntryId, EntryId]


@dataclass(frozen=True, slots=True)
class PulsarPlaces:
    """One topic of one namespace."""

    log: PulsarLog
    topic: str

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the last records over all partitions, by publish time."""
        return [_placed(record) for record in records.tail(self.log, self._kept(), count)]

    def stretches(self, at_most: int | None = None) -> list[Stretch]:
        """Return the partitions; an entry may hold many records, and counts as one."""
        kept = self._kept()
        share = None if at_most is None else max(1, at_most // max(1, len(kept)))
        return [
            Stretch(
                f"{number} {ledgers.part}",
                ledgers.first if share is None else ledgers.back(share),
                ledgers.end,
                ledgers.first,
            )
            for number, ledgers in enumerate(kept)
        ]

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:
        if stretch.first >= stretch.end:
            return
        number, _, part = stretch.part.partition(" ")
        before = EntryId(stretch.end.ledger, stretch.end.entry - 1)
        for record in read_ranges(self.log, [(int(number), part, stretch.first, before)]):
            yield _placed(record)

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:
        matches = [match for place in places if (match := _PLACE.fullmatch(place)) is not None]
        entries = {(int(m[1]), EntryId(int(m[2]), int(m[3]))) for m in matches}
        wanted = {match[0] for match in matches}
        records = (_placed(record) for record in self._read(entries))
        return {record.place: record for record in records if record.place in wanted}

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:
        """Return the records by partition and the kernel's number of their places."""
        if not spots:
            return {}
        kept = self._kept()
        entries = {
            (partition, entry)
            for partition, sequence in spots
            if 0 <= partition < len(kept)
            for entry in entries_of(kept[partition], sequence)
        }
        wanted, records = set(spots), {}
        for record in self._read(entries):
            spot = (record.partition, sequence_of(record.entry, record.index))
            if spot in wanted:
                records[spot] = _placed(record)
        return records

    @contextmanager
    def sending(self) -> Iterator[Send]:
        """Open a sender of records with keys and properties, each to its partition."""
        import pulsar

        doing, service = f"send to topic {self.topic!r}", self.log.service
        client = open_client(self.log, doing=doing)

        def send(records: Sequence[PlacedRecord]) -> None:
            try:
                _send(producers, records, Replies(service, doing))
            except pulsar.PulsarException as error:
                raise explain(doing, error, service=service) from error

        try:
            producers = open_producers(client, self.log, self.topic, _TUNING)
            yield send
        finally:
            close_quietly(client)

    def _kept(self) -> list[Ledgers]:
        doing = f"read topic {self.topic!r}"
        with Namespace(self.log, doing=doing) as namespace:
            return namespace.ledgers(namespace.get(self.topic))

    def _read(self, entries: Collection[tuple[int, EntryId]]) -> Iterator[Record]:
        """Yield the records of some entries, and of those between them."""
        if not entries:
            return
        kept = self._kept()
        known = {number: dict(ledgers.counts) for number, ledgers in enumerate(kept)}
        ranges: list[Range] = []
        for number, entry in sorted(entries):
            if entry.entry >= known.get(number, {}).get(entry.ledger, 0):
                continue
            last = ranges[-1] if ranges else None
            if last is not None and last[0] == number and _is_near(last[3], entry):
                ranges[-1] = (*last[:3], entry)
            else:
                ranges.append((number, kept[number].part, entry, entry))
        yield from read_ranges(self.log, ranges)


def sequence_of(entry: EntryId, index: int) -> int:
    """Return the kernel's number of a message's place in its partition."""
    ledger = entry.ledger & (1 << _LEDGER_BITS) - 1
    low = entry.entry & (1 << _ENTRY_BITS) - 1
    return ledger << (_ENTRY_BITS + _INDEX_BITS) | low << _INDEX_BITS | max(0, index)


def entries_of(kept: Ledgers, sequence: int) -> Iterator[EntryId]:
    """Yield the retained entries of a partition that have such a number."""
    ledger_low = sequence >> (_ENTRY_BITS + _INDEX_BITS)
    entry_low = sequence >> _INDEX_BITS & (1 << _ENTRY_BITS) - 1
    for ledger, count in kept.counts:
        if ledger & (1 << _LEDGER_BITS) - 1 == ledger_low:
            for entry in range(entry_low, count, 1 << _ENTRY_BITS):
                yield EntryId(ledger, entry)


def _is_near(before: EntryId, entry: EntryId) -> bool:
    return before.ledger == entry.ledger and entry.entry - before.entry <= _GAP


def _send(producers: Sequence[Any], records: Sequence[PlacedRecord], replies: Replies) -> None:
    from pulsar import _pulsar

    for record in records:
        message = _pulsar.MessageBuilder()
        for put, value in _parts(record).items():
            getattr(message, put)(value)
        if record.value is None:
            message.set_null_value()
        else:
            message.content(record.value)
        for name, text in record.headers:
            message.property(name, (text or b"").decode(errors="replace"))
        number = record.partition if record.partition < len(producers) else 0
        # Values are bytes already, which the client's own checks refuse.
        producers[number]._producer.send_async(message.build(), replies.take)
    replies.wait(len(records))


def _parts(record: PlacedRecord) -> Mapping[str, Any]:
    return {
        **({} if record.key is None else {"partition_key": record.key.decode(errors="replace")}),
        **({"event_timestamp": record.event_time} if record.event_time else {}),
    }


def _placed(record: Record) -> PlacedRecord:
    index = f":{record.index}" if record.index >= 0 else ""
    return PlacedRecord(
        place=f"{record.partition}:{record.entry}{index}",
        partition=record.partition,
        timestamp=record.timestamp,
        key=None if record.key is None else record.key.encode(),
        value=record.value,
        headers=tuple((name, value.encode()) for name, value in record.properties),
        event_time=record.event_time or None,
    )
