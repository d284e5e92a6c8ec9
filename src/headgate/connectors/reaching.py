"""Whether anybody answers where a flow's topics are."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.connectors.kafka import reaching as kafka
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.pulsar import reaching as pulsar
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.topics import Topic


def check_brokers(graph: Graph) -> None:
    """Refuse a flow whose brokers do not answer, within seconds.

    For a job that never ran: its user has most likely named the wrong servers. One that has may
    wait for brokers that are down, as its restart strategy says.

    Raises:
        HeadgateError: BROKER_UNREACHABLE.
    """
    for topic in _one_of_each_cluster(graph.topics()):
        try:
            _reach(topic, doing=f"run job {graph.name!r}")
        except HeadgateError as error:
            # Whatever else this client objects to, such as a JKS store, may be fine with the job's.
            if error.code == "BROKER_UNREACHABLE":
                raise


def _one_of_each_cluster(topics: Iterable[Topic]) -> list[Kafka | Pulsar]:
    bound = [topic for topic in topics if isinstance(topic, Kafka | Pulsar)]
    return list({topic.client: topic for topic in reversed(bound)}.values())[::-1]


def _reach(topic: Kafka | Pulsar, *, doing: str) -> None:
    match topic:
        case Kafka(client=client):
            kafka.reach(client, doing=doing)
        case Pulsar(client=client):
            pulsar.reach(client, doing=doing)
