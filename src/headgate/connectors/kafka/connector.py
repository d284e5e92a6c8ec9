"""The connector of topics on Kafka."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.connectors.broker.connector import BrokerConnector, BrokerEnds
from headgate.connectors.contract.connector import Audit, Positions, Reading, TopicSetup, Writing
from headgate.connectors.contract.places import Places
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.topics import WantedTopic
from headgate.connectors.kafka.access.clients import open_admin
from headgate.connectors.kafka.descriptor import SCHEME, Kafka, KafkaLog
from headgate.connectors.kafka.runs import positions, written
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic


class KafkaEnds(BrokerEnds[Kafka]):
    """Topics on Kafka as options of the kernel's source and sink."""

    SOURCE = "io.headgate.kernel.kafka.KafkaSource"

    def own_options(self, topic: Kafka, _reading: Reading) -> dict[str, str]:
        """Return the isolation level, which is an option of the client."""
        return {"isolation": topic.isolation}


def _wanted(
    topic: Kafka, role: TopicRole, options: SetupOptions, _schema: Schema | None
) -> WantedTopic:
    return topic.log.wanted(topic.name, role, options)


def _find_companions(topic: Kafka) -> Iterable[tuple[Topic, TopicRole]]:
    """Return the topic in which exactly-once stores the committed epochs of tasks."""
    return ((topic.log.bind(written.TOPIC), TopicRole.EPOCHS),)


class KafkaConnector(BrokerConnector[Kafka]):
    """Topics of Kafka clusters."""

    kind = Kafka.kind
    starts = Kafka.starts
    spark = KafkaEnds()
    positions: Positions[Kafka] = positions
    writing: Writing[Kafka] = written
    setup = TopicSetup(
        frozenset({"retention", "replication"}), _wanted, find_companions=_find_companions
    )

    @property
    def audit(self) -> Audit[Kafka]:
        from headgate.connectors.kafka.runs import audit

        return audit

    def find_log(self, text: str) -> KafkaLog | None:
        return KafkaLog.parse(text) if text.startswith(SCHEME) else None

    def reach(self, topic: Kafka, doing: str) -> None:
        """Return when a broker responds."""
        open_admin(topic.log, doing=doing)

    def open_places(self, topic: Kafka) -> Places:
        from headgate.connectors.kafka.topics.places import KafkaPlaces

        return KafkaPlaces(topic.log, topic.name)
