"""The topics of a Kafka cluster, as the CLI shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate._clock import Clock
from headgate.connectors.files.topic import check_topic_name
from headgate.connectors.kafka import records
from headgate.connectors.kafka.admin import Cluster, TopicFacts
from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.keeping import (
    differences,
    is_compacted,
    read_retention,
    topic_config,
)
from headgate.connectors.kafka.reading import Record
from headgate.connectors.topics import (
    MadeTopic,
    TopicDetails,
    TopicSummary,
    WantedTopic,
    check_partitions,
)
from headgate.errors import HeadgateError

# The text shown for a record without a value.
_TOMBSTONE = b"null"


@dataclass(frozen=True, slots=True)
class KafkaTopics:
    """The topics of one cluster."""

    client: ClientSpec

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name, without Kafka's internal ones; counting reads every record."""
        cluster = Cluster(self.client, doing="list topics")
        topics = cluster.describe(cluster.names())
        return [self._summary(facts, count=count) for facts in topics]

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:  # noqa: ARG002
        """Return the details of a topic, or raise TOPIC_NOT_FOUND."""
        cluster = Cluster(self.client, doing=f"show topic {name!r}")
        (facts,) = cluster.describe([check_topic_name(name)])
        return TopicDetails(
            summary=self._summary(facts, count=count),
            where=self._where,
            id=facts.id,
            parts=facts.parts,
        )

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Create a topic if it is missing; None settings keep the brokers' defaults."""
        check_topic_name(wanted.name)
        if wanted.deduplicate:
            raise HeadgateError(
                "TOPIC_OPTION_UNSUPPORTED",
                f"cannot create topic '{wanted.name}' with --deduplicate: on Kafka, "
                "idempotent producers and transactions prevent duplicates",
                hint="omit --deduplicate",
            )
        if wanted.partitions is not None:
            check_partitions(wanted.name, wanted.partitions)
        cluster = Cluster(self.client, doing=f"create topic {wanted.name!r}")
        made = cluster.create(
            wanted.name,
            partitions=wanted.partitions,
            replication=wanted.replication,
            config=topic_config(wanted),
        )
        (shape,) = cluster.shapes([wanted.name], just_made=True)
        partitions, replication, config = len(shape.parts), shape.replication, shape.config
        differs = differences(wanted, partitions=partitions, replication=replication, config=config)
        return MadeTopic(
            wanted.name,
            partitions,
            self._where,
            existed=not made,
            differences=() if made else differs,
            replication=replication,
            retention=read_retention(config),
            compacted=is_compacted(config),
        )

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return the values of the last committed records, by timestamp."""
        last_records = records.tail(self.client, check_topic_name(name), last)
        return [_shown(record) for record in last_records]

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:  # noqa: ARG002
        """Yield the values of the last records, then of every new record, without end."""
        new_records = records.follow(self.client, check_topic_name(name), last=last)
        return (_shown(record) for record in new_records)

    @property
    def _where(self) -> str:
        return f"kafka://{self.client.servers}"

    def _summary(self, facts: TopicFacts, *, count: bool) -> TopicSummary:
        return TopicSummary(
            name=facts.name,
            partitions=len(facts.parts),
            files=None,
            size=None,
            records=records.count_records(self.client, facts.name) if count else None,
            newest=facts.newest,
            at_most=facts.at_most,
            replication=facts.replication,
            retention=facts.retention,
            compacted=facts.compacted,
        )


def _shown(record: Record) -> bytes:
    return _TOMBSTONE if record.value is None else record.value
