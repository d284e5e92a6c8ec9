"""A real Kafka broker for tests, and what tests do with it: make topics, write, read to the end."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from headgate.brokers import lifecycle
from headgate.brokers.broker import Broker, BrokerOptions
from headgate.brokers.kafka import KAFKA
from headgate.brokers.kafka_settings import find_security
from headgate.brokers.security import AUTHORITY

_PATIENCE_S = 30
# What a test waits for must not take a production broker's time.
_HASTY = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.min.session.timeout.ms": "500",
}
# Tests write records of years ago, and a broker takes away what is too old half a minute after it
# was started, however seldom it is told to look.
_KEPT = {"retention.ms": "-1"}


@dataclass(frozen=True, slots=True)
class KafkaBroker:
    """A broker in a folder of the test's own; it may be stopped, killed and started again.

    Attributes:
        settings: The broker's own settings.
        client: How a client of librdkafka reaches it.
    """

    data: Path
    secure: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    client: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The host and the port, which stay the same over restarts."""
        return self.client["bootstrap.servers"]

    @property
    def url(self) -> str:
        """What `--on` takes."""
        return lifecycle.look(KAFKA, self.data).url or ""

    def start(self) -> Broker:
        """Start it where it does not run."""
        fresh = lifecycle.look(KAFKA, self.data).address is None
        options = BrokerOptions(
            data=self.data,
            port=0 if fresh else None,
            secure=self.secure,
            settings={**_HASTY, **self.settings},
        )
        broker, _ = lifecycle.start(KAFKA, options)
        self.client.update(client_of(broker))
        return broker

    def stop(self) -> None:
        """Stop it; its records stay."""
        lifecycle.stop(KAFKA, self.data)

    def kill(self) -> None:
        """End it as a power failure would."""
        pid = lifecycle.look(KAFKA, self.data).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def admin(self) -> AdminClient:
        """Return a client for topics and groups; what it promised is lost when it goes."""
        return AdminClient(dict(self.client))

    def make_topic(
        self,
        name: str | None = None,
        *,
        partitions: int = 1,
        config: dict[str, str] | None = None,
    ) -> str:
        """Make a topic, of a name that no other test has unless one is given; return its name.

        Args:
            config: Its settings; unless they say otherwise, its records are kept for ever.
        """
        topic = name or f"t-{uuid.uuid4().hex[:12]}"
        settings = _KEPT | (config or {})
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=settings)
        admin = self.admin()
        for made in admin.create_topics([new]).values():
            made.result(_PATIENCE_S)
        return topic

    def drop_topic(self, name: str) -> None:
        """Remove a topic and its records."""
        self._drop([name])

    def drop_topics(self) -> None:
        """Remove every topic but the broker's own."""
        topics = self.admin().list_topics(timeout=_PATIENCE_S).topics
        self._drop([name for name in topics if not name.startswith("__")])

    def _drop(self, names: list[str]) -> None:
        admin = self.admin()
        for gone in admin.delete_topics(names).values() if names else ():
            gone.result(_PATIENCE_S)

    def send(
        self,
        topic: str,
        values: Iterable[bytes | str | None],
        *,
        key: bytes | str | None = None,
        partition: int = -1,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp_ms: int = 0,
    ) -> None:
        """Write records and wait until the broker has them all."""
        producer = Producer({**self.client, "linger.ms": "1", "acks": "all"})
        for value in values:
            producer.produce(
                topic,
                value,
                key,
                partition=partition,
                headers=list(headers),
                timestamp=timestamp_ms,
            )
            producer.poll(0)
        assert producer.flush(_PATIENCE_S) == 0

    def read(self, topic: str, *, committed: bool = True) -> list[Message]:
        """Return every record of a topic, by partition and offset.

        Args:
            committed: Leave out what belongs to transactions that are open or were aborted.
        """
        consumer = Consumer(
            {
                **self.client,
                "group.id": f"test-{uuid.uuid4().hex}",
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": "true",
                # The end is told with an answer, and one without records waits this long.
                "fetch.wait.max.ms": "20",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            }
        )
        try:
            if committed:
                self._await_markers(consumer, topic)
            return _read_to_the_end(consumer, topic)
        finally:
            consumer.close()

    def _await_markers(self, consumer: Consumer, topic: str) -> None:
        """Wait until the records of committed transactions are visible.

        A commit returns before the broker has marked it in the topic. A transaction that is left
        open is waited for as well, but no longer than a second.
        """
        found = consumer.list_topics(topic, _PATIENCE_S).topics[topic]
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in found.partitions}
        admin, deadline = self.admin(), time.monotonic() + 1

        def ends(level: IsolationLevel) -> dict[TopicPartition, int]:
            answers = admin.list_offsets(asked, isolation_level=level)
            return {place: answer.result(_PATIENCE_S).offset for place, answer in answers.items()}

        if found.error is not None:
            return
        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)

    def values(self, topic: str, *, committed: bool = True) -> list[bytes | None]:
        """Return the value of every record of a topic, by partition and offset."""
        return [message.value() for message in self.read(topic, committed=committed)]

    def changes(self, topic: str) -> list[tuple[bytes, bytes | None]]:
        """Return the key and the value of every record, in the order of each partition."""
        return [_change_of(message) for message in self.read(topic)]

    def marks(self, topic: str) -> list[str]:
        """Return what every record says of where it came from."""
        return [_mark_of(message) for message in self.read(topic)]


def _change_of(message: Message) -> tuple[bytes, bytes | None]:
    key, value = message.key(), message.value()
    assert key is not None
    return bytes(key), None if value is None else bytes(value)


def _mark_of(message: Message) -> str:
    place = dict(message.headers() or ())["headgate"]
    assert isinstance(place, bytes)
    return place.decode()


def client_of(broker: Broker) -> dict[str, str]:
    """Return how a client of librdkafka reaches a broker."""
    client = {"bootstrap.servers": broker.address or "", "log_level": "2"}
    access = find_security(broker.data)
    if access is not None:
        client |= {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": access.user,
            "sasl.password": access.password,
            "ssl.ca.location": str(broker.data / AUTHORITY),
        }
    return client


def _read_to_the_end(consumer: Consumer, topic: str) -> list[Message]:
    found = consumer.list_topics(topic, _PATIENCE_S).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    left = set(found.partitions)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
    read: list[Message] = []
    while left:
        message = consumer.poll(_PATIENCE_S)
        assert message is not None, f"topic {topic!r} does not come to an end"
        error = message.error()
        if error is None:
            read.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            left.discard(message.partition())
        else:
            raise KafkaException(error)
    return sorted(read, key=lambda each: (each.partition() or 0, each.offset() or 0))
