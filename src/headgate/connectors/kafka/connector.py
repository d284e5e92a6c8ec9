"""The connector of topics on Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.connectors.audit import AuditedRun, Input, OutputRows
from headgate.connectors.connector import Positions, SparkEnds, TopicSetup
from headgate.connectors.kafka import _spark, groups, positions, setup, written
from headgate.connectors.kafka.clients import open_admin
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.kafka.log import SCHEME, KafkaLog, parse_kafka_log
from headgate.connectors.kafka.starts import STARTS
from headgate.connectors.patterns import has_name, share_server
from headgate.connectors.places import Places
from headgate.connectors.written import UNMARKED, Batches, Writers, Written
from headgate.flow.topics import Topic


class KafkaWriting:
    """Rows in transactions, which leave a mark for each batch."""

    rests_on = "transactions"
    can_repeat = True
    has_transactions = True

    def end_transactions(self, topic: Kafka, ids: Iterable[str]) -> None:
        """End the transactions of tasks on the topic's cluster, and fence the tasks."""
        groups.fence(topic.client, ids)

    def find_written(
        self, topics: Mapping[str, Kafka], writers: Writers, batches: Batches
    ) -> dict[str, Written]:
        """Return what each topic's cluster holds of a run's batches."""
        if not writers.leave_marks:
            return dict.fromkeys(topics, UNMARKED)
        clients = dict.fromkeys(topic.client for topic in topics.values())
        answers = {client: written.find_written(client, writers, batches) for client in clients}
        return {name: answers[topic.client] for name, topic in topics.items()}


class KafkaAudit:
    """Records by their offsets, and rows by their headers."""

    shows_places = True

    def open_input(self, job: str, topic: Kafka, begin: str | None, end: str) -> Input:
        """Return the records that a run read."""
        from headgate.connectors.kafka.audit_input import open_input

        return open_input(job, topic, begin, end)

    def open_rows(self, run: AuditedRun, topic: Kafka) -> OutputRows:
        """Return the records that runs wrote."""
        from headgate.connectors.kafka.audit_rows import open_rows

        return open_rows(run, topic)


class KafkaConnector:
    """Topics of Kafka clusters."""

    kind = Kafka.kind
    has_keys = True
    spark: SparkEnds[Kafka] = _spark
    starts = STARTS
    positions: Positions[Kafka] = positions
    writing = KafkaWriting()
    setup: TopicSetup[Kafka] = setup
    audit = KafkaAudit()

    def find_log(self, text: str) -> KafkaLog | None:
        """Return the cluster for a value of `--on`."""
        return parse_kafka_log(text) if text.startswith(SCHEME) else None

    def log_of(self, topic: Kafka) -> KafkaLog:
        """Return the topic's cluster."""
        return KafkaLog(topic.client)

    def where(self, topic: Kafka) -> str:
        """Return the servers."""
        return f"{SCHEME}{topic.servers}"

    def find_cluster(self, topic: Kafka) -> str:
        """Return the connection of the topic's cluster."""
        return topic.client.to_text()

    def reach(self, topic: Kafka, doing: str) -> None:
        """Return when a broker responds."""
        open_admin(topic.client, doing=doing)

    def reads(self, read: Kafka, topic: Topic) -> bool:
        """Return True if a topic on the same servers has the name or matches the pattern."""
        return (
            isinstance(topic, Kafka)
            and share_server(read.servers, topic.servers)
            and has_name(read, topic.name)
        )

    def open_places(self, topic: Kafka) -> Places:
        """Return the records of the topic's partitions."""
        from headgate.connectors.kafka.places import KafkaPlaces

        return KafkaPlaces(topic.client, topic.name)
