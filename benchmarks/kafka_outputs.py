"""The store's topics on Kafka, read as a committed reader does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

_PIECE = 5_000
_LOOK = 0.2
_SILENCE = 30.0


@dataclass(frozen=True, slots=True)
class KafkaReader:
    """Reads topics on Kafka to their end; a place is a list of partitions with offsets."""

    servers: str

    def find_ends(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Return where topics end now."""
        return find_ends(self.servers, topics)

    def beginning(self, topic: str) -> list[TopicPartition]:
        """Return where a topic begins."""
        return [TopicPartition(each.topic, each.partition, 0) for each in self.find_ends([topic])]

    def read(self, since: list[TopicPartition]) -> Iterator[tuple[str, bytes]]:
        """Yield topic and value of all records a committed reader finds up to the end."""
        return read_records(self.servers, since)


def find_ends(servers: str, topics: Sequence[str]) -> list[TopicPartition]:
    """Return where each partition of some topics ends now."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "headgate-bench"})
    try:
        found = []
        for topic in topics:
            for partition in consumer.list_topics(topic, timeout=_SILENCE).topics[topic].partitions:
                _, end = consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=_SILENCE
                )
                found.append(TopicPartition(topic, partition, end))
        return found
    finally:
        consumer.close()


def read_records(servers: str, since: list[TopicPartition]) -> Iterator[tuple[str, bytes]]:
    """Yield topic and value of all records a committed reader finds up to the end."""
    for piece in read_pieces(servers, since):
        for message in piece:
            yield str(message.topic()), bytes(message.value() or b"")


def read_pieces(servers: str, since: list[TopicPartition]) -> Iterator[list[Message]]:
    """Yield all records a committed reader finds up to the end, many at a time."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "headgate-bench",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            # Offsets are no counts where there are transactions: the end is told, not computed.
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign(since)
        left, heard = len(since), time.monotonic()
        while left:
            # A piece that does not fill up is waited for all the same.
            messages = consumer.consume(_PIECE, timeout=_LOOK)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENCE:
                raise RuntimeError(f"no record came within {_SILENCE:.0f} s")
            records = [message for message in messages if not _is_end(message)]
            left -= len(messages) - len(records)
            yield records
    finally:
        consumer.close()


def _is_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return True
