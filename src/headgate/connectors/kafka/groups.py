"""The positions of jobs as consumer groups on Kafka, and the end of their transactions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.clients import open_admin, open_producer, read_metadata
from headgate.connectors.kafka.failures import unreachable

TIMEOUT_S = 5.0

_PAUSE_S = 0.1
_PASSING = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "_WAIT_COORD",
    }
)
_FENCING = {"acks": "all", "enable.idempotence": "true"}


def publish_positions(
    client: ClientSpec,
    group: str,
    positions: Mapping[tuple[str, int], int],
    *,
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Set the offsets of a consumer group without members, for tools that show lag.

    Args:
        group: The group's name.
        positions: The next offset by topic and partition.
        timeout_s: How long to wait for the response once a broker is connected.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    if not positions:
        return
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    doing = f"publish positions as group {group!r}"
    admin, troubles = open_admin(client, doing=doing)
    wanted = [TopicPartition(topic, part, offset) for (topic, part), offset in positions.items()]
    request = [ConsumerGroupTopicPartitions(group, wanted)]
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            answers = admin.alter_consumer_group_offsets(request, request_timeout=timeout_s)
            answer = answers[group].result(timeout=timeout_s + 1)
        except KafkaException as error:
            # A new coordinator is available a moment later.
            if error.args[0].name() not in _PASSING or time.monotonic() > deadline:
                raise troubles.explain(doing, error) from error
            time.sleep(_PAUSE_S)
            continue
        except TimeoutError as error:
            raise unreachable(doing, client.servers, f"no response in {timeout_s:g}s") from error
        failed = next(
            (partition.error for partition in answer.topic_partitions if partition.error), None
        )
        if failed is not None:
            raise troubles.explain(doing, failed)
        return


def fence(
    client: ClientSpec, transactional_ids: Iterable[str], *, timeout_s: float = TIMEOUT_S
) -> None:
    """Abort the transactions of dead producers, and fence live ones.

    Args:
        transactional_ids: The producers; an unknown id costs one round trip.
        timeout_s: How long to wait for each.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    from confluent_kafka import KafkaException

    for transactional_id in transactional_ids:
        doing = f"end the transactions of {transactional_id!r}"
        producer, troubles = open_producer(
            client, {**_FENCING, "transactional.id": transactional_id}
        )
        try:
            # A new producer takes over the id, and the broker aborts the open transaction.
            read_metadata(producer, troubles, doing=doing)
            producer.init_transactions(timeout_s)
        except KafkaException as error:
            raise troubles.explain(doing, error) from error
