"""What a cluster says of its topics, and topics made on it."""

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
# Of a question that is asked of a whole cluster.
_ASKED_AT_ONCE = 2000
_PAUSE_S = 0.1
_GONE = KafkaError.UNKNOWN_TOPIC_OR_PART
# A topic that was just made has leaders a moment later.
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
    """One partition: the broker that leads it, and its copies."""

    number: int
    leader: int | None
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A topic as its cluster describes it.

    Attributes:
        id: A topic made anew under the same name has another.
        parts: By number.
        config: Its settings, those that are the brokers' own among them.
    """

    name: str
    id: str
    parts: tuple[Part, ...]
    config: Mapping[str, str]

    @property
    def replication(self) -> int:
        """How many copies the partition with the fewest has."""
        return min((part.replicas for part in self.parts), default=0)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic and how far its partitions reach.

    Attributes:
        parts: By number.
        retention: How long records are kept; compaction keeps the last of a key whatever it is.
    """

    name: str
    id: str
    parts: tuple[TopicPart, ...]
    retention: Retention
    compacted: bool

    @property
    def replication(self) -> int:
        """How many copies the partition with the fewest has."""
        return min((part.replicas for part in self.parts), default=0)

    @property
    def newest(self) -> datetime | None:
        """The latest timestamp of its records."""
        return max((part.newest for part in self.parts if part.newest is not None), default=None)

    @property
    def at_most(self) -> int:
        """How many records there are at most: offsets have gaps."""
        return sum(part.next - part.first for part in self.parts)


class Cluster:
    """One cluster, reached when this is made.

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
        """Return the names of the topics, without those that Kafka keeps for itself."""
        found = read_metadata(self._admin, self._troubles, doing=self._doing)
        return sorted(name for name in found.topics if not name.startswith("__"))

    def describe(self, names: Sequence[str]) -> list[TopicFacts]:
        """Return what topics are like and how far they reach, in the order of their names.

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
        """Return what topics are like, in the order of their names.

        Args:
            just_made: They are there, even if a broker has not heard of them yet.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        if not names:
            return []
        found = self._described(names, passing={_GONE} if just_made else ())
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        configs = self._ask(lambda: self._admin.describe_configs(resources, **_PATIENCE))
        by_name = {each.name: entries for each, entries in configs.items()}
        return [
            Shape(
                name,
                _java_id(found[name].topic_id),
                tuple(_part(each) for each in found[name].partitions),
                {key: str(entry.value) for key, entry in by_name[name].items()},
            )
            for name in names
        ]

    def partitions(self, name: str) -> list[Partition]:
        """Return the partitions of a topic that is there.

        Raises:
            HeadgateError: TOPIC_NOT_FOUND.
        """
        return [(name, each.id) for each in self._described([name])[name].partitions]

    def first_offsets(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the earliest offset that is kept of each."""
        found = self._offsets(partitions, OffsetSpec.earliest())
        return {each: answer.offset for each, answer in found.items()}

    def next_offsets(
        self, partitions: Iterable[Partition], *, committed: bool = True
    ) -> dict[Partition, int]:
        """Return where each ends.

        Args:
            committed: Up to the first record of a transaction that is open.
        """
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found = self._offsets(partitions, OffsetSpec.latest(), isolation_level=level)
        return {each: answer.offset for each, answer in found.items()}

    def newest(self, partitions: Iterable[Partition]) -> dict[Partition, datetime | None]:
        """Return the latest timestamp of each; None where it is empty."""
        found = self._offsets(partitions, OffsetSpec.max_timestamp())
        return {each: _moment(answer.timestamp) for each, answer in found.items()}

    def create(
        self,
        name: str,
        *,
        partitions: int | None,
        replication: int | None,
        config: Mapping[str, str],
    ) -> bool:
        """Make a topic, and return whether this call made it: False if it was there already.

        Args:
            partitions: None leaves it to the brokers.
            replication: None is as many copies as there are brokers, 3 at most.
            config: Settings that are not the brokers' own.
        """
        if replication is None:
            found = read_metadata(self._admin, self._troubles, doing=self._doing)
            replication = min(_USUAL_REPLICATION, max(1, len(found.brokers)))
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
        left = [TopicPartition(*each) for each in partitions]
        found: dict[Partition, Any] = {}
        for first in range(0, len(left), _ASKED_AT_ONCE):
            asked = dict.fromkeys(left[first : first + _ASKED_AT_ONCE], spec)
            answers = self._ask(
                functools.partial(self._admin.list_offsets, asked, **_PATIENCE, **options)
            )
            found |= {(each.topic, each.partition): told for each, told in answers.items()}
        return found

    def _ask(
        self,
        question: Callable[[], Mapping[K, Future[Any]]],
        *,
        but: int | None = None,
        passing: Iterable[int] = (),
    ) -> dict[K, Any]:
        """Return the answers; ask again while what is wrong will pass.

        Args:
            but: An error that the caller has words for; it is raised as Kafka's own.
            passing: Errors that will pass, besides those that always do.
        """
        patient = _PASSING | set(passing)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return {
                    each: answer.result(timeout=PATIENCE_S + 1)
                    for each, answer in question().items()
                }
            except KafkaException as error:
                code = error.args[0].code()
                if code not in patient or time.monotonic() > deadline:
                    if code == but:
                        raise
                    raise self._troubles.explain(self._doing, error) from error
            except TimeoutError as error:
                found = f"no answer in {PATIENCE_S:g}s"
                raise unreachable(self._doing, self._client.servers, found) from error
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
    # As Java writes it, and with it the positions of jobs: base64 that is safe in a URL.
    return str(uuid).translate({ord("+"): "-", ord("/"): "_"}).rstrip("=")
