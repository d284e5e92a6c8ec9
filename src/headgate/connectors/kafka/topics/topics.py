"""The topics of a Kafka cluster, as the CLI shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headgate._clock import Clock
from headgate.connectors.contract.topics import (
    MadeTopic,
    TopicDetails,
    TopicSummary,
    WantedTopic,
    check_partitions,
    check_topic_name,
)
from headgate.connectors.kafka.access.admin import Cluster, TopicFacts
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.keeping import differences, topic_config
from headgate.connectors.kafka.topics import records
from headgate.errors import HeadgateError

# The text shown for a record without a value.
_TOMBSTONE = b"null"


@dataclass(frozen=True, slots=True)
class KafkaTopics:
    """The topics of one cluster."""

    log: KafkaLog

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name, without Kafka's internal ones; counting reads every record."""
        cluster = Cluster(self.log, doing="list topics")
        return self._summaries(cluster.describe(cluster.names()), count=count)

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:  # noqa: ARG002
        cluster = Cluster(self.log, doing=f"show topic {name!r}")
        (facts,) = cluster.describe([check_topic_name(name)])
        (summary,) = self._summaries([facts], count=count)
        return TopicDetails(
            summary=summary,
            where=self.log.address,
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
        cluster = Cluster(self.log, doing=f"create topic {wanted.name!r}")
        made = cluster.create(
            wanted.name,
            partitions=wanted.partitions,
            replication=wanted.replication,
            config=topic_config(wanted),
        )
        (topic,) = cluster.layouts([wanted.name], just_made=True)
        new = MadeTopic(
            wanted.name,
            len(topic.parts),
            self.log.address,
            existed=not made,
            replication=topic.replication,
            retention=topic.retention,
            compacted=topic.compacted,
        )
        return new if made else replace(new, differences=differences(wanted, new))

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return the values of the last committed records, by timestamp."""
        last_records = records.tail(self.log, check_topic_name(name), last)
        return [_shown(record) for record in last_records]

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:  # noqa: ARG002
        new_records = records.follow(self.log, check_topic_name(name), last=last)
        return (_shown(record) for record in new_records)

    def _summaries(self, topics: Sequence[TopicFacts], *, count: bool) -> list[TopicSummary]:
        counts = records.count_records(self.log, topics) if count else {}
        return [
            TopicSummary(
                name=facts.name,
                partitions=len(facts.parts),
                records=counts.get(facts.name),
                newest=facts.newest,
                at_most=facts.at_most,
                replication=facts.replication,
                retention=facts.retention,
                compacted=facts.compacted,
            )
            for facts in topics
        ]


def _shown(record: records.Record) -> bytes:
    return _TOMBSTONE if record.value is None else record.value
