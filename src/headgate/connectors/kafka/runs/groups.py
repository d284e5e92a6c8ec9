"""Consumer groups on Kafka, and the end of transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headgate.connectors.kafka.access.clients import ask, open_admin, open_producer, read_metadata
from headgate.connectors.kafka.descriptor import KafkaLog

TIMEOUT_S = 5.0

# A new coordinator is available, and a transaction that just ended is decided, a moment later.
_PASSING = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "UNSTABLE_OFFSET_COMMIT",
        "_WAIT_COORD",
    }
)
_FENCING = {"acks": "all", "enable.idempotence": "true"}


class Groups:
    """The consumer groups of a cluster; connects when created.

    Args:
        doing: The purpose, as in "cannot DOING".
        timeout_s: How long to wait for a response.
        patience_s: How long to repeat a request after temporary errors.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED; from every method BROKER_FAILED too.
    """

    def __init__(
        self,
        log: KafkaLog,
        *,
        doing: str,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = TIMEOUT_S,
    ) -> None:
        self.admin, self.troubles = open_admin(log, doing=doing)
        self._doing = doing
        self._timeout_s = timeout_s
        self._patience_s = patience_s

    def names(self) -> list[str]:
        """Return the names of all groups."""
        groups = self._ask(self.admin.list_consumer_groups)
        return [group.group_id for group in groups.valid]

    def set_offsets(self, group: str, partitions: Iterable[Any]) -> None:
        """Set the offsets of a group without members; each partition has its offset."""
        self._ask_group(self.admin.alter_consumer_group_offsets, group, partitions)

    def get_offset(self, group: str, partition: Any) -> Any:
        """Return the committed offset of a partition, after pending transactions are decided."""
        (committed,) = self._ask_group(
            self.admin.list_consumer_group_offsets, group, [partition], require_stable=True
        )
        return committed

    def _ask_group(
        self, request: Callable[..., Any], group: str, partitions: Iterable[Any], **options: Any
    ) -> Any:
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        wanted = [ConsumerGroupTopicPartitions(group, list(partitions))]

        def check(answer: Any) -> Any:
            for partition in answer.topic_partitions:
                if partition.error is not None:
                    raise KafkaException(partition.error)
            return answer.topic_partitions

        return self._ask(
            lambda **timeout: request(wanted, **options, **timeout)[group], check=check
        )

    def _ask(
        self, request: Callable[..., Any], check: Callable[[Any], Any] = lambda answer: answer
    ) -> Any:
        return ask(
            lambda: check(
                request(request_timeout=self._timeout_s).result(timeout=self._timeout_s + 1)
            ),
            self.troubles,
            doing=self._doing,
            passing=_PASSING,
            patience_s=self._patience_s,
        )


def publish_positions(log: KafkaLog, group: str, positions: Mapping[tuple[str, int], int]) -> None:
    """Set the offsets of a consumer group without members, for tools that show lag.

    Args:
        group: The group's name.
        positions: The next offset by topic and partition.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    if not positions:
        return
    from confluent_kafka import TopicPartition

    wanted = [TopicPartition(topic, part, offset) for (topic, part), offset in positions.items()]
    Groups(log, doing=f"publish positions as group {group!r}").set_offsets(group, wanted)


def fence(log: KafkaLog, transactional_ids: Iterable[str]) -> None:
    """Abort the transactions of dead producers, and fence live ones.

    Args:
        transactional_ids: The producers; an unknown id costs one round trip.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    from confluent_kafka import KafkaException

    for transactional_id in transactional_ids:
        doing = f"end the transactions of {transactional_id!r}"
        producer, troubles = open_producer(log, {**_FENCING, "transactional.id": transactional_id})
        try:
            # A new producer takes over the id, and the broker aborts the open transaction.
            read_metadata(producer, troubles, doing=doing)
            producer.init_transactions(TIMEOUT_S)
        except KafkaException as error:
            raise troubles.explain(doing, error) from error
