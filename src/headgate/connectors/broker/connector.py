"""The members of connectors that are the same for all brokers."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from headgate.connectors.broker.log import BrokerLog
from headgate.connectors.broker.topic import BrokerTopic, has_name
from headgate.connectors.contract.connector import Reading
from headgate.errors import HeadgateError
from headgate.flow.topics import Topic

T = TypeVar("T", bound=BrokerTopic)


class BrokerEnds(Generic[T]):
    """Topics on a broker as options of the kernel's source and sink."""

    SOURCE: str
    IS_PARTITIONED = True
    HOLDS_LINES = False

    def modules(self, topic: T) -> tuple[str, ...]:
        return (topic.kind,)

    def own_options(self, topic: T, reading: Reading) -> dict[str, str]:
        """Return the options of the source that only this broker has."""
        raise NotImplementedError

    def source_options(self, topic: T, reading: Reading) -> dict[str, str]:
        names = {"topics": topic.kernel_name}
        start = reading.start or topic.start_text or "earliest"
        return {
            "client": topic.log.to_text(),
            **(names if topic.pattern is None else {"pattern": topic.pattern}),
            "start": topic.starts.kernel_start(start),
            "max.bytes": str(reading.max_batch),
            "max.record": str(reading.max_record),
            "splits": str(reading.splits),
            "on.data.loss": reading.on_data_loss,
            "meta": str(reading.meta).lower(),
            **self.own_options(topic, reading),
        }

    def record_options(self, _topic: T) -> dict[str, Any]:
        """Return nothing: a record is all that its decoder needs."""
        return {}

    def output_option(self, topic: T) -> dict[str, str]:
        """Return the options of the sink.

        Raises:
            HeadgateError: BAD_TOPIC: the topic is a pattern.
        """
        if topic.pattern is not None:
            servers, value = next(iter(topic.log.fields().items()))
            raise HeadgateError(
                "BAD_TOPIC",
                f"cannot write to topic {topic.name!r}: it is the pattern {topic.pattern!r}, and "
                "rows must go to a single topic",
                hint=f"write to {type(topic).__name__}({topic.name!r}, {servers}={value!r})",
            )
        return {"kind": topic.kind, "topic": topic.kernel_name}

    def replaces(self, _topic: T, _key: str | None) -> bool:
        """Return False: every row is a record."""
        return False

    def file_spec(self, _topic: T) -> None:
        """Return None: a broker takes records."""

    def prepare(self, _topic: T, _partitions: int, _lineage: str | None) -> None:
        """Do nothing: the kernel, the broker or `headgate setup` creates topics."""


class BrokerConnector(Generic[T]):
    """The members of a connector that are the same for all brokers."""

    has_keys = True

    def log_of(self, topic: T) -> BrokerLog:
        return topic.log

    def where(self, topic: T) -> str:
        return topic.log.address

    def find_cluster(self, topic: T) -> str:
        return topic.log.to_text()

    def reads(self, read: T, topic: Topic) -> bool:
        """Return True if a topic on the same servers has the name or matches the pattern."""
        return (
            isinstance(topic, type(read))
            and not _hosts(read).isdisjoint(_hosts(topic))
            and getattr(read, "namespace", None) == getattr(topic, "namespace", None)
            and has_name(read, topic.name)
        )


def _hosts(topic: BrokerTopic) -> set[str]:
    return set(topic.log.cluster.rpartition("//")[2].split(","))
