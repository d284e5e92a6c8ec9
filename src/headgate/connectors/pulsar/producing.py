"""Sends many records; each call returns when the brokers have acknowledged all of them.

The C++ client reports each acknowledgement to Python, which takes longer than sending the record.
So each partition has a producer of its own, and only its last record is reported: acknowledgements
of a producer arrive in order, and without a timeout it drops no record before a later one. Large
records, which may fail alone, are reported too.
"""

from __future__ import annotations

import itertools
import queue
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.clients import open_client
from headgate.connectors.pulsar.failures import explain, failed, unreachable
from headgate.connectors.pulsar.namespaces import Namespace
from headgate.connectors.pulsar.routing import partition_of
from headgate.connectors.pulsar.schemas import JSON, plain_schema

if TYPE_CHECKING:
    from pulsar import Client

KeyValue = tuple[bytes | None, bytes | None]

# How long records may wait for a broker that is down before they count as lost.
_DELIVERY_S = 60.0
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

    Args:
        client: The connection.
        namespace: `tenant/namespace`.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED; errors of the options.
    """

    def __init__(self, client: ClientSpec, namespace: str) -> None:
        self._spec = client
        self._namespace = namespace
        self._topics: dict[str, _Producers] = {}
        self._client: Client = open_client(client, doing="send records")

    def __enter__(self) -> PulsarSender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import pulsar

        # The remaining records belong to a failed call.
        with suppress(pulsar.PulsarException):
            self._client.close()

    def send(self, topic: str, records: Iterable[KeyValue]) -> int:
        """Send keys and values, and return the number of acknowledged records, which is all of
        them.

        A value of None is a tombstone. Records of one key keep their order.

        Raises:
            HeadgateError: The error of Pulsar; some records may have arrived. TOPIC_NOT_FOUND.
        """
        if topic not in self._topics:
            self._topics[topic] = self._open(topic)
        left, sent = iter(records), 0
        while some := list(itertools.islice(left, _AT_ONCE)):
            self._topics[topic].send(some)
            sent += len(some)
        return sent

    def _open(self, topic: str) -> _Producers:
        import pulsar

        doing, service = f"send to topic {topic!r}", self._spec.service
        with Namespace(self._spec, self._namespace, doing=doing) as namespace:
            shape = namespace.get(topic)
            carried = namespace.find_schema(shape)
        options = {**_TUNING}
        if carried is not None and carried[0] == JSON:
            options["schema"] = plain_schema(carried[1])
        try:
            opened = [self._client.create_producer(part, **options) for part in shape.parts()]
        except pulsar.PulsarException as error:
            raise explain(doing, error, service=service) from error
        return _Producers(topic, service, opened)


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
        self._ok = _pulsar.Result.Ok
        self._turn = 0
        # A failed call leaves replies behind, which must not count for the next call.
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def send(self, records: Sequence[KeyValue]) -> None:
        """Send records, and return when all are acknowledged."""
        self._replies = queue.SimpleQueue()
        expected = sum(
            self._send(send, part)
            for send, part in zip(self._sends, self._split(records), strict=True)
        )
        deadline = time.monotonic() + _DELIVERY_S
        for _ in range(expected):
            self._wait(len(records), deadline)

    def _split(self, records: Sequence[KeyValue]) -> list[list[KeyValue]]:
        """Return the records of each partition; records without a key rotate."""
        count = len(self._sends)
        parts: list[list[KeyValue]] = [[] for _ in range(count)]
        self._turn = turn = (self._turn + 1) % count
        for record in records:
            key = record[0]
            parts[turn if key is None else partition_of(key, count)].append(record)
        return parts

    def _send(self, send: Any, records: list[KeyValue]) -> int:
        """Send the records of a partition, and return the number of replies to expect."""
        replies, last, build, tell = 0, len(records) - 1, self._builder, self._tell()
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
                send(message.build(), tell)
            else:
                send(message.build(), None)
        return replies

    def _tell(self) -> Any:
        put = self._replies.put
        return lambda result, _id: put(result)

    def _wait(self, records: int, deadline: float) -> None:
        doing = f"send {records} records to topic {self._topic!r}"
        try:
            result = self._replies.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            problem = f"no acknowledgement in {_DELIVERY_S:g}s"
            raise unreachable(doing, self._service, problem) from None
        if result != self._ok:
            raise failed(doing, self._service, result.name, retryable=False)
