"""What jobs leave on Kafka for others: how far they read, and no open transactions."""

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
    """Set the offsets of a consumer group that has no members, for tools that show lag.

    Args:
        group: The group's name.
        positions: The next offset by topic and partition.
        timeout_s: How long the answer is waited for, after a broker was reached.

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
            # A coordinator that is just being appointed is there a moment later.
            if error.args[0].name() not in _PASSING or time.monotonic() > deadline:
                raise troubles.explain(doing, error) from error
            time.sleep(_PAUSE_S)
            continue
        except TimeoutError as error:
            raise unreachable(doing, client.servers, f"no answer in {timeout_s:g}s") from error
        failed = next((each.error for each in answer.topic_partitions if each.error), None)
        if failed is not None:
            raise troubles.explain(doing, failed)
        return


def fence(
    client: ClientSpec, transactional_ids: Iterable[str], *, timeout_s: float = TIMEOUT_S
) -> None:
    """End the transactions of producers that died, and shut those out that did not.

    Args:
        transactional_ids: Whose; one that never was costs a round trip.
        timeout_s: How long each is waited for.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, BROKER_REFUSED, BROKER_FAILED.
    """
    from confluent_kafka import KafkaException

    for each in transactional_ids:
        doing = f"end the transactions of {each!r}"
        producer, troubles = open_producer(client, {**_FENCING, "transactional.id": each})
        try:
            # A producer that is begun anew takes the id over, and the broker aborts what is open.
            read_metadata(producer, troubles, doing=doing)
            producer.init_transactions(timeout_s)
        except KafkaException as error:
            raise troubles.explain(doing, error) from error
