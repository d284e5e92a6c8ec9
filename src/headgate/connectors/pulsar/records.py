"""The records of a topic for people: its last ones, its new ones, how many there are."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.connectors.merging import merge
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.clients import open_client
from headgate.connectors.pulsar.failures import explain
from headgate.connectors.pulsar.ledgers import Ledgers
from headgate.connectors.pulsar.message_ids import EntryId

if TYPE_CHECKING:
    from pulsar import Client, Message

_STEP_BACK = 8
_LOOK_S = 0.2
# For an entry that is no record, such as the end of a transaction, a reader waits in vain.
_PATIENCE_MS = 3000
# How often in a row nothing may come before the rest is taken for no records.
_SILENT = 4
_QUEUE = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """A message.

    Attributes:
        entry: Where it lies.
        index: Its place in the entry's batch; -1 where it is alone.
        timestamp: When it was published, in epoch milliseconds.
        value: None for an empty one too.
        key: As text, which is what Pulsar's keys are; None for an empty one too.
        properties: Names and values.
        event_time: What its producer said, in epoch milliseconds; 0 where nothing was said.
    """

    partition: int
    entry: EntryId
    index: int
    timestamp: int
    value: bytes | None
    key: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    event_time: int = 0

    @classmethod
    def of(cls, partition: int, message: Message) -> Record:
        """Return a message of the client's as a value."""
        id_ = message.message_id()
        return cls(
            partition,
            EntryId(id_.ledger_id(), id_.entry_id()),
            id_.batch_index(),
            message.publish_timestamp(),
            message.data() or None,
            message.partition_key() or None,
            tuple(message.properties().items()),
            message.event_timestamp(),
        )


def tail(
    client: ClientSpec, parts: Sequence[str], kept: Sequence[Ledgers], count: int
) -> list[Record]:
    """Return the last records over all partitions, by publish time.

    Args:
        parts: The whole names of the partitions.
        kept: What each keeps.
        count: How many records.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    if not count:
        return []
    with _Reading(client) as reading:
        by_part = [
            reading.last(number, part, ledgers, count)
            for number, (part, ledgers) in enumerate(zip(parts, kept, strict=True))
        ]
    merged = list(merge(by_part, time=lambda record: record.timestamp))
    return merged[max(0, len(merged) - count) :]


def count_records(client: ClientSpec, parts: Sequence[str], kept: Sequence[Ledgers]) -> int:
    """Return how many records partitions keep; reads them all."""
    with _Reading(client) as reading:
        return sum(
            1
            for number, (part, ledgers) in enumerate(zip(parts, kept, strict=True))
            for _ in reading.messages(number, part, ledgers.first, ledgers.last)
        )


def read_ranges(
    client: ClientSpec, ranges: Sequence[tuple[int, str, EntryId, EntryId]]
) -> Iterator[Record]:
    """Yield the records of some ranges, one after the other.

    Args:
        ranges: Of each, its partition's number and whole name, its first entry and its last.
    """
    if not ranges:
        return
    with _Reading(client) as reading:
        for number, part, first, last in ranges:
            yield from reading.messages(number, part, first, last)


def follow(
    client: ClientSpec, parts: Sequence[str], kept: Sequence[Ledgers], *, last: int = 0
) -> Iterator[Record]:
    """Yield the last records, then every one that comes after what partitions keep, for ever."""
    found = tail(client, parts, kept, last)
    return _follow(client, parts, kept, found)


def _follow(
    client: ClientSpec, parts: Sequence[str], kept: Sequence[Ledgers], found: list[Record]
) -> Iterator[Record]:
    yield from found
    arrived: queue.SimpleQueue[Record] = queue.SimpleQueue()
    with _Reading(client) as reading:
        for number, (part, ledgers) in enumerate(zip(parts, kept, strict=True)):
            reading.listen(number, part, ledgers, arrived)
        while True:
            try:
                yield arrived.get(timeout=_LOOK_S)
            except queue.Empty:
                # A wait without an end would not hear Ctrl-C.
                continue


class _Reading:
    """A client and its readers, for one thread."""

    def __init__(self, client: ClientSpec) -> None:
        self._service = client.service
        self._client: Client = open_client(client, doing="read records")

    def __enter__(self) -> _Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def last(self, number: int, part: str, kept: Ledgers, count: int) -> list[Record]:
        """Return the last records of a partition, or all where there are fewer."""
        span = 1
        while True:
            start = kept.back(span)
            found = list(self.messages(number, part, start, kept.last))
            # An entry holds one message, a batch of them, or a part of one.
            if len(found) >= count or start == kept.first:
                return found[-count:]
            span *= _STEP_BACK

    def messages(
        self, number: int, part: str, first: EntryId, last: EntryId | None
    ) -> Iterator[Record]:
        """Yield the records of a partition from one entry to another, both included."""
        if last is None:
            return
        import pulsar

        silent = 0
        try:
            reader = self._reader(part, first)
            while reader.has_message_available():
                try:
                    record = Record.of(number, reader.read_next(_PATIENCE_MS))
                except pulsar.Timeout:
                    silent += 1
                    # An entry at the end may be no record: the mark of a transaction, for one.
                    if silent < _SILENT or not reader.is_connected():
                        continue
                    break
                silent = 0
                if record.entry > last:
                    break
                yield record
            reader.close()
        except pulsar.PulsarException as error:
            raise explain(f"read topic {part!r}", error, service=self._service) from error

    def listen(
        self, number: int, part: str, kept: Ledgers, arrived: queue.SimpleQueue[Record]
    ) -> None:
        """Put what comes after what a partition keeps into a queue, from now on."""
        import pulsar

        def take(_reader: Any, message: Message) -> None:
            record = Record.of(number, message)
            if record.entry >= kept.end:
                arrived.put(record)

        try:
            self._reader(part, kept.last or kept.end, reader_listener=take)
        except pulsar.PulsarException as error:
            raise explain(f"follow topic {part!r}", error, service=self._service) from error

    def _reader(self, part: str, first: EntryId, **options: Any) -> Any:
        import pulsar

        start = pulsar.MessageId(-1, first.ledger, first.entry, -1)
        return self._client.create_reader(
            part,
            start if first.ledger >= 0 else pulsar.MessageId.earliest,
            receiver_queue_size=_QUEUE,
            start_message_id_inclusive=True,
            **options,
        )
