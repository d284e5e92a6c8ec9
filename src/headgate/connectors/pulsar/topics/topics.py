"""The topics of a namespace on Pulsar, as the CLI shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from headgate._clock import Clock
from headgate.connectors.contract.topics import (
    LedgerPart,
    MadeTopic,
    Retention,
    TopicDetails,
    TopicSummary,
    WantedTopic,
    check_partitions,
    check_topic_name,
)
from headgate.connectors.pulsar.descriptor import PulsarLog
from headgate.connectors.pulsar.names import full_name
from headgate.connectors.pulsar.topics import records
from headgate.connectors.pulsar.topics.making import make_topic
from headgate.connectors.pulsar.topics.namespaces import Namespace, Shape
from headgate.errors import HeadgateError

_USUAL_RETENTION = Retention(timedelta(days=7))
# The text shown for a record without a value.
_TOMBSTONE = b"null"


@dataclass(frozen=True, slots=True)
class PulsarTopics:
    """The topics of one namespace."""

    log: PulsarLog

    def list_topics(self, *, count: bool) -> list[TopicSummary]:
        """Return the topics by name, without internal ones; counting reads every record."""
        with self._open("list topics") as namespace:
            return [
                self._summary(namespace, shape, _parts(namespace, shape), count=count)
                for shape in namespace.shapes()
            ]

    def show(self, name: str, *, count: bool, last_files: int) -> TopicDetails:  # noqa: ARG002
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
            last_records = records.tail(self.log, namespace.ledgers(shape), last)
        return [_shown(record) for record in last_records]

    def follow(self, name: str, *, last: int, clock: Clock) -> Iterator[bytes]:  # noqa: ARG002
        with self._open(f"follow topic {name!r}") as namespace:
            shape = namespace.get(check_topic_name(name))
            kept = namespace.ledgers(shape)
        new_records = records.follow(self.log, kept, last=last)
        return (_shown(record) for record in new_records)

    def _open(self, doing: str) -> Namespace:
        return Namespace(self.log, doing=doing)

    def _summary(
        self, namespace: Namespace, shape: Shape, parts: Sequence[LedgerPart], *, count: bool
    ) -> TopicSummary:
        kept, schema = namespace.kept(shape), namespace.find_schema(shape)
        return TopicSummary(
            name=shape.full.removeprefix(full_name(self.log.namespace, "")),
            partitions=shape.partitions,
            size=sum(part.size for part in parts),
            records=records.count_records(self.log, namespace.ledgers(shape)) if count else None,
            newest=max((part.newest for part in parts if part.newest), default=None),
            retention=kept.retention,
            compacted=kept.compacted,
            entries=sum(part.entries for part in parts),
            deduplicated=kept.deduplicated,
            schema=None if schema is None else schema[0],
        )


def _parts(namespace: Namespace, shape: Shape) -> tuple[LedgerPart, ...]:
    return tuple(
        LedgerPart(
            number=number,
            first=str(kept.first),
            next=str(kept.end),
            ledgers=len(kept.counts),
            entries=kept.entries,
            size=kept.size,
            newest=namespace.find_newest(kept),
        )
        for number, kept in enumerate(namespace.ledgers(shape))
    )


def _shown(record: records.Record) -> bytes:
    return _TOMBSTONE if record.value is None else record.value
