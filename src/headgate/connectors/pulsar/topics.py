"""The topics of a namespace on Pulsar, as the CLI shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headgate._clock import Clock
from headgate.connectors.pulsar import records
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.ledgers import Ledgers
from headgate.connectors.pulsar.making import make_topic
from headgate.connectors.pulsar.names import DEFAULT_NAMESPACE, PERSISTENT
from headgate.connectors.pulsar.namespaces import Namespace, Shape
from headgate.connectors.topics import (
    LedgerPart,
    MadeTopic,
    Retention,
    TopicDetails,
    TopicSummary,
    WantedTopic,
    check_partitions,
)
from headgate.errors import HeadgateError
from headgate.flow.names import check_topic_name

_USUAL_RETENTION = Retention(timedelta(days=7))
# The text shown for a record without a value.
_TOMBSTONE = b"null"


@dataclass(frozen=True, slots=True)
class PulsarTopics:
    """The topics of one namespace."""

    client: ClientSpec
    namespace: str = DEFAULT_NAMESPACE

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name, without internal ones; counting reads every record."""
        with self._open("list topics") as namespace:
            return [
                self._summary(namespace, shape, _parts(namespace, shape), count=count)
                for shape in namespace.shapes()
            ]

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:  # noqa: ARG002
        """Return the details of a topic, or raise TOPIC_NOT_FOUND."""
        with self._open(f"show topic {name!r}") as namespace:
            shape = namespace.get(check_topic_name(name))
            parts = _parts(namespace, shape)
            return TopicDetails(
                summary=self._summary(namespace, shape, parts, count=count),
                where=namespace.where,
                id=shape.full,
                parts=parts,
                subscriptions=namespace.subscriptions(shape),
            )

    def make(self, wanted: WantedTopic) -> MadeTopic:
        """Create a topic if it is missing, with its tenant and namespace.

        It is partitioned, so that it can grow. Without a retention, and if the namespace would keep
        no record without a subscription, it keeps records for 7 days.

        Raises:
            HeadgateError: TOPIC_OPTION_UNSUPPORTED: replication is not a setting of a topic.
        """
        check_topic_name(wanted.name)
        if wanted.partitions is not None:
            check_partitions(wanted.name, wanted.partitions)
        if wanted.replication is not None:
            raise HeadgateError(
                "TOPIC_OPTION_UNSUPPORTED",
                f"cannot create topic '{wanted.name}' with --replication: on Pulsar, the "
                "namespace and its bookies decide the number of replicas",
                hint="omit --replication, or: pulsar-admin namespaces set-persistence",
            )
        with self._open(f"create topic {wanted.name!r}") as namespace:
            return make_topic(namespace, wanted, _USUAL_RETENTION)

    def tail(self, name: str, *, last: int) -> list[bytes]:
        """Return the values of the last records, by publish time."""
        with self._open(f"read topic {name!r}") as namespace:
            shape = namespace.get(check_topic_name(name))
            last_records = records.tail(self.client, shape.parts(), namespace.ledgers(shape), last)
        return [_shown(record) for record in last_records]

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:  # noqa: ARG002
        """Yield the values of the last records, then of every new record, without end."""
        with self._open(f"follow topic {name!r}") as namespace:
            shape = namespace.get(check_topic_name(name))
            kept = namespace.ledgers(shape)
        new_records = records.follow(self.client, shape.parts(), kept, last=last)
        return (_shown(record) for record in new_records)

    def _open(self, doing: str) -> Namespace:
        return Namespace(self.client, self.namespace, doing=doing)

    def _summary(
        self, namespace: Namespace, shape: Shape, parts: Sequence[LedgerPart], *, count: bool
    ) -> TopicSummary:
        kept, schema = namespace.kept(shape), namespace.find_schema(shape)
        return TopicSummary(
            name=shape.full.removeprefix(f"{PERSISTENT}{self.namespace}/"),
            partitions=shape.partitions,
            files=None,
            size=sum(part.size for part in parts),
            records=self._count(namespace, shape) if count else None,
            newest=max((part.newest for part in parts if part.newest), default=None),
            retention=kept.retention,
            compacted=kept.compacted,
            entries=sum(part.entries for part in parts),
            deduplicated=kept.deduplicated,
            schema=None if schema is None else schema[0],
        )

    def _count(self, namespace: Namespace, shape: Shape) -> int:
        return records.count_records(self.client, shape.parts(), namespace.ledgers(shape))


def _parts(namespace: Namespace, shape: Shape) -> tuple[LedgerPart, ...]:
    parts = zip(shape.parts(), namespace.ledgers(shape), strict=True)
    return tuple(_part(namespace, number, *part) for number, part in enumerate(parts))


def _part(namespace: Namespace, number: int, name: str, kept: Ledgers) -> LedgerPart:
    return LedgerPart(
        number=number,
        first=str(kept.first),
        next=str(kept.end),
        ledgers=len(kept.counts),
        entries=kept.entries,
        size=kept.size,
        newest=namespace.published(name, kept.last),
    )


def _shown(record: records.Record) -> bytes:
    return _TOMBSTONE if record.value is None else record.value
