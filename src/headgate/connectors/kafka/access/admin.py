"""Requests to a cluster about its topics, and creation of topics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, NewTopic, OffsetSpec, ResourceType

from headgate.connectors.contract.topics import Retention, TopicPart, topic_not_found
from headgate.connectors.kafka.access.clients import PATIENCE_S, ask, open_admin, read_metadata
from headgate.connectors.kafka.descriptor import KafkaLog
from headgate.connectors.kafka.keeping import is_compacted, read_retention

_USUAL_REPLICATION = 3
# Timeout of a request to a whole cluster.
_ASKED_AT_ONCE = 2000
_GONE = "UNKNOWN_TOPIC_OR_PART"
# A new topic has leaders a moment later.
_PASSING = frozenset({"LEADER_NOT_AVAILABLE", "NOT_LEADER_FOR_PARTITION", "REPLICA_NOT_AVAILABLE"})
_PATIENCE = {"request_timeout": PATIENCE_S}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
K = TypeVar("K")
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as its cluster describes it.

    Attributes:
        id: A recreated topic of the same name has another id.
        parts: By number.
        retention: How long records are kept; compaction always keeps the last record of a key.
    """

    name: str
    id: str
    parts: tuple[TopicPart, ...]
    retention: Retention
    compacted: bool

    @property
    def replication(self) -> int:
        """The smallest number of replicas of its partitions."""
        return min((part.replicas for part in self.parts), default=0)

    @property
    def newest(self) -> datetime | None:
        """The latest timestamp of its records."""
        return max((part.newest for part in self.parts if part.newest is not None), default=None)

    @property
    def at_most(self) -> int:
        """The maximum number of records: offsets have gaps."""
        return sum(part.next - part.first for part in self.parts)


class Cluster:
    """One cluster; connects when created.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED; from every method BROKER_FAILED too.
    """

    def __init__(self, log: KafkaLog, *, doing: str) -> None:
        self._log = log
        self._doing = doing
        self._admin, self._troubles = open_admin(log, doing=doing)

    def names(self) -> list[str]:
        """Return the names of the topics, without Kafka's internal topics."""
        metadata = read_metadata(self._admin, self._troubles, doing=self._doing)
        return sorted(name for name in metadata.topics if not name.startswith("__"))

    def describe(self, names: Sequence[str]) -> list[TopicFacts]:
        """Return topics with their offsets, ordered by name.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        topics = self.layouts(names)
        partitions = [(topic.name, part.number) for topic in topics for part in topic.parts]
        first = self.first_offsets(partitions)
        following = self.next_offsets(partitions, committed=False)
        newest = self.newest(partitions)

        def measured(place: Partition, part: TopicPart) -> TopicPart:
            return replace(part, first=first[place], next=following[place], newest=newest[place])

        return [
            replace(
                topic,
                parts=tuple(measured((topic.name, part.number), part) for part in topic.parts),
            )
            for topic in topics
        ]

    def layouts(self, names: Sequence[str], *, just_made: bool = False) -> list[TopicFacts]:
        """Return topics without their offsets, which are 0, ordered by name.

        Args:
            just_made: The topics exist, even if a broker does not know them yet.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        if not names:
            return []
        descriptions = self._described(names, passing=(_GONE,) if just_made else ())
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        configs = self._ask(lambda: self._admin.describe_configs(resources, **_PATIENCE))
        by_name = {
            resource.name: {key: str(entry.value) for key, entry in entries.items()}
            for resource, entries in configs.items()
        }
        return [
            TopicFacts(
                name,
                _java_id(descriptions[name].topic_id),
                tuple(_part(part) for part in descriptions[name].partitions),
                read_retention(by_name[name]),
                is_compacted(by_name[name]),
            )
            for name in names
        ]

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of those topics that exist, by name."""
        existing = set(self.names()).intersection(names)
        described = self._described(sorted(existing)) if existing else {}
        return {name: _java_id(topic.topic_id) for name, topic in described.items()}

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the earliest retained offset of each partition."""
        offsets = self._offsets(partitions, OffsetSpec.earliest())
        return {partition: answer.offset for partition, answer in offsets.items()}

    def next_offsets(
        self, partitions: Iterable[Partition], *, committed: bool = True
    ) -> dict[Partition, int]:
        """Return the end offset of each partition.

        Args:
            committed: Stop before the first record of an open transaction.
        """
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        offsets = self._offsets(partitions, OffsetSpec.latest(), isolation_level=level)
        return {partition: answer.offset for partition, answer in offsets.items()}

    def bounds(self, topic: str) -> tuple[dict[int, int], dict[int, int]]:
        """Return the first and the end offset of a topic's committed records, by partition.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        partitions = [(topic, part.id) for part in self._described([topic])[topic].partitions]
        first, end = self.first_offsets(partitions), self.next_offsets(partitions)
        return _by_number(first), _by_number(end)

    def committed_ends(self, topic: TopicFacts) -> dict[int, int]:
        """Return the end offset of a topic's committed records, by partition."""
        return _by_number(self.next_offsets((topic.name, part.number) for part in topic.parts))

    def newest(self, partitions: Iterable[Partition]) -> dict[Partition, datetime | None]:
        """Return the latest timestamp of each partition; None if it is empty."""
        offsets = self._offsets(partitions, OffsetSpec.max_timestamp())
        return {partition: _moment(answer.timestamp) for partition, answer in offsets.items()}

    def create(
        self,
        name: str,
        *,
        partitions: int | None,
        replication: int | None,
        config: Mapping[str, str],
    ) -> bool:
        """Create a topic; return False if it already existed.

        Args:
            partitions: None for the brokers' default.
            replication: None for one replica per broker, at most 3.
            config: Settings that override the brokers' defaults.
        """
        if replication is None:
            metadata = read_metadata(self._admin, self._troubles, doing=self._doing)
            replication = min(_USUAL_REPLICATION, max(1, len(metadata.brokers)))
        count = -1 if partitions is None else partitions
        new = NewTopic(name, count, replication, config={**config})
        try:
            self._ask(
                lambda: self._admin.create_topics([new], **_PATIENCE),
                raised="TOPIC_ALREADY_EXISTS",
            )
        except KafkaException:
            return False
        return True

    def _described(self, names: Sequence[str], passing: Iterable[str] = ()) -> dict[str, Any]:
        asked = TopicCollection([*names])
        try:
            return self._ask(
                lambda: self._admin.describe_topics(asked, **_PATIENCE),
                raised=_GONE,
                passing=passing,
            )
        except KafkaException as error:
            existing, log = self.names(), self._log
            missing = next((name for name in names if name not in existing), names[0])
            raise topic_not_found(missing, existing, where=log.servers, on=log.address) from error

    def _offsets(
        self, partitions: Iterable[Partition], spec: OffsetSpec, **options: Any
    ) -> dict[Partition, Any]:
        left = [TopicPartition(*partition) for partition in partitions]
        offsets: dict[Partition, Any] = {}
        for first in range(0, len(left), _ASKED_AT_ONCE):
            asked = dict.fromkeys(left[first : first + _ASKED_AT_ONCE], spec)
            answers = self._ask(
                functools.partial(self._admin.list_offsets, asked, **_PATIENCE, **options)
            )
            offsets |= {
                (partition.topic, partition.partition): offset
                for partition, offset in answers.items()
            }
        return offsets

    def _ask(
        self,
        question: Callable[[], Mapping[K, Future[Any]]],
        *,
        raised: str = "",
        passing: Iterable[str] = (),
    ) -> dict[K, Any]:
        """Return the responses; `raised` and `passing` as for `ask`."""
        return ask(
            lambda: {
                key: answer.result(timeout=PATIENCE_S + 1) for key, answer in question().items()
            },
            self._troubles,
            doing=self._doing,
            passing={*_PASSING, *passing},
            raised=raised,
        )


def _by_number(offsets: Mapping[Partition, int]) -> dict[int, int]:
    return {number: offset for (_, number), offset in offsets.items()}


def _moment(millis: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=millis) if millis >= 0 else None


def _part(described: Any) -> TopicPart:
    leader = None if described.leader is None else described.leader.id
    return TopicPart(
        number=described.id,
        first=0,
        next=0,
        leader=leader,
        replicas=len(described.replicas),
        in_sync=len(described.isr),
        newest=None,
    )


def _java_id(uuid: Any) -> str:
    # Java's form, used in the positions of jobs: base64 that is safe in a URL.
    return str(uuid).translate({ord("+"): "-", ord("/"): "_"}).rstrip("=")
