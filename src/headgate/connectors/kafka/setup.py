"""Creation of a flow's topics on Kafka."""

from __future__ import annotations

from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.kafka.log import KafkaLog
from headgate.connectors.kafka.written import TOPIC
from headgate.connectors.setup import SetupOptions, TopicRole, find_problems, wanted_topic
from headgate.connectors.topics import WantedTopic
from headgate.flow.schema import Schema

__all__ = ["OPTIONS", "find_companions", "find_problems", "wanted"]

OPTIONS = frozenset({"retention", "replication"})


def find_companions(topic: Kafka) -> tuple[tuple[Kafka, TopicRole]]:
    """Return the topic in which exactly-once stores the committed epochs of tasks."""
    return ((KafkaLog(topic.client).bind(TOPIC), TopicRole.EPOCHS),)


def wanted(
    topic: Kafka, role: TopicRole, options: SetupOptions, _schema: Schema | None = None
) -> WantedTopic:
    """Return the settings of a topic."""
    return wanted_topic(topic.name, role, options)
