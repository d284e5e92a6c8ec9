"""Sends many records; each call returns when the brokers have acknowledged all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.connectors.contract.connector import Records
from headgate.connectors.kafka.access.clients import PATIENCE_S, open_producer, read_metadata
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.failures import FAILURES

# How long records may wait for a broker that is down before they count as lost.
_DELIVERY_S = 60.0

_TUNING = {
    "enable.idempotence": "true",
    # Java's default partitioner, so that both fill a topic alike.
    "partitioner": "murmur2_random",
    "linger.ms": "5",
    "batch.size": "1000000",
    "batch.num.messages": "100000",
    "queue.buffering.max.messages": "1000000",
    "queue.buffering.max.kbytes": "262144",
    "delivery.timeout.ms": str(round(_DELIVERY_S * 1000)),
}
# Counting acknowledgements in Python would take longer than sending.
_OWN = {"delivery.report.only.error": True}


class KafkaSender:
    """Sends keyed records and waits for their acknowledgement. For one thread.

    Args:
        tuning: Further defaults that the client's options override.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED; errors of the options.
    """

    def __init__(self, log: KafkaLog, tuning: Mapping[str, str] | None = None) -> None:
        defaults = {**_tuning(log), **(tuning or {})}
        self._producer, self._troubles = open_producer(log, _OWN, tuning=defaults)
        self._failed: list[KafkaError] = []
        read_metadata(self._producer, self._troubles, doing="send records")

    def __enter__(self) -> KafkaSender:
        return self

    def __exit__(self, *_: object) -> None:
        # The remaining records belong to a failed call.
        self._producer.purge()
        self._producer.flush(0)

    def send(self, topic: str, records: Records) -> int:
        """Send keys and values, and return the number of acknowledged records, which is all of
        them.

        A value of None is a tombstone. Records of one key keep their order.

        Raises:
            HeadgateError: The error of Kafka; some records may have arrived.
        """
        messages: list[Any] = [{"key": key, "value": value} for key, value in records]
        left = messages
        while left:
            self._producer.produce_batch(topic, left, on_delivery=self._keep_failure)
            refused = [message for message in left if "_error" in message]
            self._check_room(topic, refused)
            left = [{"key": refusal["key"], "value": refusal["value"]} for refusal in refused]
        self._wait(topic)
        return len(messages)

    def send_each(self, topic: str, messages: Iterable[Mapping[str, Any]]) -> None:
        """Send records with their partitions and headers, which a batch does not support.

        Args:
            messages: The arguments of `Producer.produce`.
        """
        for message in messages:
            try:
                self._producer.produce(topic, on_delivery=self._keep_failure, **message)
            except KafkaException as error:
                raise self._troubles.explain(f"send to topic {topic!r}", error) from error
        self._wait(topic)

    def _keep_failure(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(error)

    def _check_room(self, topic: str, refused: list[Any]) -> None:
        """Retry the records that found a full queue; raise other errors."""
        for message in refused:
            error = message["_error"]
            if error.code() != KafkaError._QUEUE_FULL:
                raise self._troubles.explain(f"send to topic {topic!r}", KafkaException(error))
        if refused:
            self._wait(topic)

    def _wait(self, topic: str) -> None:
        left = self._producer.flush(_DELIVERY_S + PATIENCE_S)
        if self._failed:
            first, count = self._failed[0], len(self._failed)
            self._failed.clear()
            raise self._troubles.explain(f"send {count} records to topic {topic!r}", first)
        if left:
            problem = f"no acknowledgement in {_DELIVERY_S:g}s"
            doing = f"send {left} records to topic {topic!r}"
            raise FAILURES.unreachable(doing, self._troubles.servers, problem)


def _tuning(log: KafkaLog) -> dict[str, str]:
    """Return the tuning; idempotence requires all acknowledgements."""
    acks = {value for name, value in log.options if name in ("acks", "producer.acks")}
    if acks <= {"all", "-1"}:
        return _TUNING
    return {name: value for name, value in _TUNING.items() if name != "enable.idempotence"}
