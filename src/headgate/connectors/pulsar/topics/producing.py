"""Sends many records; each call returns when the brokers have acknowledged all of them.

The C++ client reports each acknowledgement to Python, which takes longer than sending the record.
So each partition has a producer of its own, and only its last record is reported: acknowledgements
of a producer arrive in order, and without a timeout it drops no record before a later one. Large
records, which may fail alone, are reported too.
"""

from __future__ import annotations

import itertools
import queue
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headgate.connectors.pulsar.access.clients import open_client
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.failures import FAILURES, explain
from headgate.connectors.pulsar.topics.namespaces import Namespace
from headgate.connectors.pulsar.topics.schemas import JSON, plain_schema

if TYPE_CHECKING:
    from pulsar import Client

KeyValue = tuple[bytes | None, bytes | None]

# How long records may wait for a broker that is down before they count as lost.
DELIVERY_S = 60.0
_OPEN_S = 20.0
_PAUSE_S = 0.5
# The maximum number of unacknowledged records of a call; the client has room for more.
_AT_ONCE = 50_000
# A client drops records that are too large for its broker and reports that only to the record's own
# callback. Brokers accept 5 MiB by default; larger records get a callback each.
_LARGE = 32 << 10
_TUNING: dict[str, Any] = {
    "send_timeout_millis": 0,
    "max_pending_messages": 2 * _AT_ONCE,
    "block_if_queue_full": True,
    "batching_enabled": True,
    "batching_max_messages": 10_000,
    "batching_max_allowed_size_in_bytes": 128 << 10,
    "batching_max_publish_delay_ms": 5,
}


class PulsarSender:
    """Sends keyed records to the topics of a namespace. For one thread.

    Keys are routed as by Java's producers. A topic with a JSON schema is written with it.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED; errors of the options.
    """

    def __init__(self, log: PulsarLog) -> None:
        self._log = log
        self._topics: dict[str, _Producers] = {}
        self._client: Client = open_client(log, doing="send records")

    def __enter__(self) -> PulsarSender:
        return self

    def __exit__(self, *_: object) -> None:
        # The remaining records belong to a failed call.
        close_quietly(self._client)

    def send(self, topic: str, records: Iterable[KeyValue]) -> int:
        """Send keys and values, and return the number of acknowledged records, which is all of
        them.

        A value of None is a tombstone. Records of one key keep their order.

        Raises:
            HeadgateError: The error of Pulsar; some records may have arrived. TOPIC_NOT_FOUND.
        """
        if topic not in self._topics:
            opened = open_producers(self._client, self._log, topic, _TUNING)
            self._topics[topic] = _Producers(topic, self._log.service, opened)
        left, sent = iter(records), 0
        while batch := list(itertools.islice(left, _AT_ONCE)):
            self._topics[topic].send(batch)
            sent += len(batch)
        return sent


class Replies:
    """The replies to the records of one call; a failed call leaves replies behind.

    Args:
        doing: The purpose, as in "cannot DOING".
    """

    def __init__(self, service: str, doing: str) -> None:
        self._service = service
        self._doing = doing
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def take(self, result: Any, _id: Any) -> None:
        """Take a reply; the callback of the client."""
        self._results.put(result)

    def wait(self, count: int) -> None:
        """Return when this many records are acknowledged.

        Raises:
            HeadgateError: BROKER_UNREACHABLE, BROKER_FAILED.
        """
        from pulsar import _pulsar

        deadline = time.monotonic() + DELIVERY_S
        for _ in range(count):
            try:
                result = self._results.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                problem = f"no acknowledgement in {DELIVERY_S:g}s"
                raise FAILURES.unreachable(self._doing, self._service, problem) from None
            if result != _pulsar.Result.Ok:
                raise FAILURES.failed(self._doing, self._service, result.name, retryable=False)


class _Producers:
    """The producers of a topic, by partition."""

    def __init__(self, topic: str, service: str, producers: Sequence[Any]) -> None:
        from pulsar import _pulsar

        self._topic = topic
        self._service = service
        # Like the client's own `send_async`, without its argument checks, which take as long as
        # sending (seen in pulsar-client 3.13).
        self._sends = [producer._producer.send_async for producer in producers]
        self._builder = _pulsar.MessageBuilder
        self._turn = 0

    def send(self, records: Sequence[KeyValue]) -> None:
        """Send records, and return when all are acknowledged."""
        doing = f"send {len(records)} records to topic {self._topic!r}"
        replies = Replies(self._service, doing)
        parts = zip(self._sends, self._split(records), strict=True)
        replies.wait(sum(self._send(send, part, replies.take) for send, part in parts))

    def _split(self, records: Sequence[KeyValue]) -> list[list[KeyValue]]:
        """Return the records of each partition; records without a key rotate."""
        count = len(self._sends)
        parts: list[list[KeyValue]] = [[] for _ in range(count)]
        self._turn = turn = (self._turn + 1) % count
        for record in records:
            key = record[0]
            parts[turn if key is None else partition_of(key, count)].append(record)
        return parts

    def _send(self, send: Any, records: list[KeyValue], take: Any) -> int:
        """Send the records of a partition, and return the number of replies to expect."""
        replies, last, build = 0, len(records) - 1, self._builder
        for place, (key, value) in enumerate(records):
            message = build()
            if key is not None:
                message.partition_key(key.decode(errors="replace"))
            if value is None:
                message.set_null_value()
            else:
                message.content(value)
            if place == last or (value is not None and len(value) > _LARGE):
                replies += 1
                send(message.build(), take)
            else:
                send(message.build(), None)
        return replies


def open_producers(
    client: Client, log: PulsarLog, topic: str, tuning: Mapping[str, Any]
) -> list[Any]:
    """Return a producer for each partition of a topic; a JSON schema is written with.

    Raises:
        HeadgateError: TOPIC_NOT_FOUND; errors of the broker.
    """
    doing = f"send to topic {topic!r}"
    with Namespace(log, doing=doing) as namespace:
        shape = namespace.get(topic)
        carried = namespace.find_schema(shape)
    options = {**tuning}
    if carried is not None and carried[0] == JSON:
        options["schema"] = plain_schema(carried[1])
    return [_open(client, part, options, doing, log.service) for part in shape.parts()]


def _open(client: Client, part: str, options: dict[str, Any], doing: str, service: str) -> Any:
    """Return a producer; retry while the broker is loading the topic."""
    import pulsar

    deadline = time.monotonic() + _OPEN_S
    while True:
        try:
            return client.create_producer(part, **options)
        except pulsar.PulsarException as error:
            failure = explain(doing, error, service=service)
            if not failure.retryable or time.monotonic() > deadline:
                raise failure from error
            time.sleep(_PAUSE_S)


def close_quietly(client: Client) -> None:
    """Close a client; ignore its errors."""
    import pulsar

    with suppress(pulsar.PulsarException):
        client.close()


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, as Pulsar's Java and Go producers choose it by default."""
    return java_hash(key) % partitions


def java_hash(key: bytes) -> int:
    """Return Java's hash of a key's text, without its sign."""
    units = key if key.isascii() else _utf16(key)
    hashed = 0
    for unit in units:
        hashed = hashed * 31 + unit
    return hashed & 0x7FFFFFFF


def _utf16(key: bytes) -> tuple[int, ...]:
    text = key.decode("utf-8", errors="replace").encode("utf-16-le")
    return struct.unpack(f"<{len(text) // 2}H", text)
