"""The records of a topic for people: the last ones, new ones, and their number."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.connectors.contract.places import merge
from headgate.connectors.pulsar.access.clients import open_client
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.failures import explain
from headgate.connectors.pulsar.names import EntryId
from headgate.connectors.pulsar.topics.ledgers import Ledgers

if TYPE_CHECKING:
    from pulsar import Client, Message

_STEP_BACK = 8
_LOOK_S = 0.2
# A reader waits in vain for an entry that is not a record, such as the end of a transaction.
_PATIENCE_MS = 3000
# After this many empty reads in a row, the remaining entries count as no records.
_SILENT = 4
_QUEUE = 1000


@dataclass(frozen=True, slots=True)
class Record:
    """A message.

    Attributes:
        entry: Its position.
        index: Its index in the entry's batch; -1 without a batch.
        timestamp: When it was published, in epoch milliseconds.
        value: None for an empty value too.
        key: Text, as in Pulsar; None for an empty key too.
        properties: Names and values.
        event_time: The producer's event time in epoch milliseconds; 0 if it has none.
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
        """Return a message of the client as a value."""
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


def tail(log: PulsarLog, kept: Sequence[Ledgers], count: int) -> list[Record]:
    """Return the last records over all partitions, by publish time.

    Args:
        kept: The retained entries of each partition.
        count: The number of records.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    if not count:
        return []
    with _Reading(log) as reading:
        by_part = [reading.last(number, ledgers, count) for number, ledgers in enumerate(kept)]
    merged = list(merge(by_part, time=lambda record: record.timestamp))
    return merged[max(0, len(merged) - count) :]


def count_records(log: PulsarLog, kept: Sequence[Ledgers]) -> int:
    """Return the number of retained records of partitions; reads them all."""
    with _Reading(log) as reading:
        return sum(
            1
            for number, ledgers in enumerate(kept)
            for _ in reading.messages(number, ledgers.part, ledgers.first, ledgers.last)
        )


def read_ranges(
    log: PulsarLog, ranges: Sequence[tuple[int, str, EntryId, EntryId]]
) -> Iterator[Record]:
    """Yield the records of some ranges, one range after the other.

    Args:
        ranges: The partition's number and full name, the first entry and the last.
    """
    if not ranges:
        return
    with _Reading(log) as reading:
        for number, part, first, last in ranges:
            yield from reading.messages(number, part, first, last)


def follow(log: PulsarLog, kept: Sequence[Ledgers], *, last: int = 0) -> Iterator[Record]:
    """Yield the last records, then every record after the retained ones, without end."""
    return _follow(log, kept, tail(log, kept, last))


def _follow(log: PulsarLog, kept: Sequence[Ledgers], existing: list[Record]) -> Iterator[Record]:
    yield from existing
    arrived: queue.SimpleQueue[Record] = queue.SimpleQueue()
    with _Reading(log) as reading:
        for number, ledgers in enumerate(kept):
            reading.listen(number, ledgers, arrived)
        while True:
            try:
                yield arrived.get(timeout=_LOOK_S)
            except queue.Empty:
                # A wait without a timeout would not notice Ctrl-C.
                continue


class _Reading:
    """A client and its readers, for one thread."""

    def __init__(self, log: PulsarLog) -> None:
        self._service = log.service
        self._client: Client = open_client(log, doing="read records")

    def __enter__(self) -> _Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def last(self, number: int, kept: Ledgers, count: int) -> list[Record]:
        """Return the last records of a partition, or all if there are fewer."""
        span = 1
        while True:
            start = kept.back(span)
            records = list(self.messages(number, kept.part, start, kept.last))
            # An entry holds one message, a batch, or a part of a message.
            if len(records) >= count or start == kept.first:
                return records[-count:]
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
                    # The last entry may not be a record, but the mark of a transaction.
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

    def listen(self, number: int, kept: Ledgers, arrived: queue.SimpleQueue[Record]) -> None:
        """Put every record after the retained ones into a queue, from now on."""
        import pulsar

        def take(_reader: Any, message: Message) -> None:
            record = Record.of(number, message)
            if record.entry >= kept.end:
                arrived.put(record)

        try:
            self._reader(kept.part, kept.last or kept.end, reader_listener=take)
        except pulsar.PulsarException as error:
            raise explain(f"follow topic {kept.part!r}", error, service=self._service) from error

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
