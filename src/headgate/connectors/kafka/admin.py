"""Requests to a cluster about its topics, and creation of topics."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.clients import PATIENCE_S, Troubles, open_admin, read_metadata
from headgate.connectors.kafka.failures import unreachable
from headgate.connectors.kafka.keeping import is_compacted, read_retention
from headgate.connectors.topics import Retention, TopicPart, topic_not_found
from headgate.errors import HeadgateError

_USUAL_REPLICATION = 3
# Timeout of a request to a whole cluster.
_ASKED_AT_ONCE = 2000
_PAUSE_S = 0.1
_GONE = KafkaError.UNKNOWN_TOPIC_OR_PART
# A new topic has leaders a moment later.
_PASSING = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
    }
)
_PATIENCE = {"request_timeout": PATIENCE_S}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
K = TypeVar("K")
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """One partition: the broker that leads it, and its replicas."""

    number: int
    leader: int | None
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A topic as its cluster describes it.

    Attributes:
        id: A recreated topic of the same name has another id.
        parts: By number.
        config: Its settings, including those inherited from the brokers.
    """

    name: str
    id: str
    parts: tuple[Part, ...]
    config: Mapping[str, str]

    @property
    def replication(self) -> int:
        """The smallest number of replicas of its partitions."""
        return min((part.replicas for part in self.parts), default=0)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic and the offsets of its partitions.

    Attributes:
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

    def __init__(self, client: ClientSpec, *, doing: str) -> None:
        self._client = client
        self._doing = doing
        opened = open_admin(client, doing=doing)
        self._admin: AdminClient = opened[0]
        self._troubles: Troubles = opened[1]

    def names(self) -> list[str]:
        """Return the names of the topics, without Kafka's internal topics."""
        metadata = read_metadata(self._admin, self._troubles, doing=self._doing)
        return sorted(name for name in metadata.topics if not name.startswith("__"))

    def describe(self, names: Sequence[str]) -> list[TopicFacts]:
        """Return topics with their offsets, ordered by name.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        shapes = self.shapes(names)
        partitions = [(shape.name, part.number) for shape in shapes for part in shape.parts]
        first = self.first_offsets(partitions)
        following = self.next_offsets(partitions, committed=False)
        newest = self.newest(partitions)

        def measured(topic: str, part: Part) -> TopicPart:
            place = (topic, part.number)
            return TopicPart(
                part.number,
                first[place],
                following[place],
                part.leader,
                part.replicas,
                part.in_sync,
                newest[place],
            )

        return [
            TopicFacts(
                shape.name,
                shape.id,
                tuple(measured(shape.name, part) for part in shape.parts),
                read_retention(shape.config),
                is_compacted(shape.config),
            )
            for shape in shapes
        ]

    def shapes(self, names: Sequence[str], *, just_made: bool = False) -> list[Shape]:
        """Return topics, ordered by name.

        Args:
            just_made: The topics exist, even if a broker does not know them yet.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        if not names:
            return []
        descriptions = self._described(names, passing={_GONE} if just_made else ())
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        configs = self._ask(lambda: self._admin.describe_configs(resources, **_PATIENCE))
        by_name = {part.name: entries for part, entries in configs.items()}
        return [
            Shape(
                name,
                _java_id(descriptions[name].topic_id),
                tuple(_part(part) for part in descriptions[name].partitions),
                {key: str(entry.value) for key, entry in by_name[name].items()},
            )
            for name in names
        ]

    def partitions(self, name: str) -> list[Partition]:
        """Return the partitions of an existing topic.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        return [(name, part.id) for part in self._described([name])[name].partitions]

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
                but=KafkaError.TOPIC_ALREADY_EXISTS,
            )
        except KafkaException:
            return False
        return True

    def _described(self, names: Sequence[str], passing: Iterable[int] = ()) -> dict[str, Any]:
        asked = TopicCollection([*names])
        try:
            return self._ask(
                lambda: self._admin.describe_topics(asked, **_PATIENCE), but=_GONE, passing=passing
            )
        except KafkaException as error:
            there_are = self.names()
            missing = next((name for name in names if name not in there_are), names[0])
            raise self._not_found(missing, there_are) from error

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
        but: int | None = None,
        passing: Iterable[int] = (),
    ) -> dict[K, Any]:
        """Return the responses; repeat the request after temporary errors.

        Args:
            but: An error that the caller handles; it is raised unchanged.
            passing: Additional temporary errors.
        """
        patient = _PASSING | set(passing)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return {
                    key: answer.result(timeout=PATIENCE_S + 1) for key, answer in question().items()
                }
            except KafkaException as error:
                code = error.args[0].code()
                if code not in patient or time.monotonic() > deadline:
                    if code == but:
                        raise
                    raise self._troubles.explain(self._doing, error) from error
            except TimeoutError as error:
                problem = f"no response in {PATIENCE_S:g}s"
                raise unreachable(self._doing, self._client.servers, problem) from error
            time.sleep(_PAUSE_S)

    def _not_found(self, name: str, names: Sequence[str]) -> HeadgateError:
        servers = self._client.servers
        return topic_not_found(name, names, where=servers, on=f"kafka://{servers}")


def _moment(millis: int) -> datetime | None:
    return _EPOCH + timedelta(milliseconds=millis) if millis >= 0 else None


def _part(described: Any) -> Part:
    leader = None if described.leader is None else described.leader.id
    return Part(described.id, leader, len(described.replicas), len(described.isr))


def _java_id(uuid: Any) -> str:
    # Java's form, used in the positions of jobs: base64 that is safe in a URL.
    return str(uuid).translate({ord("+"): "-", ord("/"): "_"}).rstrip("=")
