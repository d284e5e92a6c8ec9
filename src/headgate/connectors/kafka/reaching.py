"""Whether anybody answers where a flow's topics are."""

from __future__ import annotations

from headgate.connectors.kafka.clients import open_admin
from headgate.connectors.kafka.descriptor import Kafka
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph


def check_brokers(graph: Graph) -> None:
    """Refuse a flow whose brokers do not answer, within seconds.

    For a job that never ran: its user has most likely named the wrong servers. One that has may
    wait for brokers that are down, as its restart strategy says.

    Raises:
        HeadgateError: BROKER_UNREACHABLE.
    """
    topics = [topic for topic in graph.topics() if isinstance(topic, Kafka)]
    for client in dict.fromkeys(topic.client for topic in topics):
        try:
            open_admin(client, doing=f"run job {graph.name!r}")
        except HeadgateError as error:
            # Whatever else this client objects to, such as a JKS store, may be fine with the job's.
            if error.code == "BROKER_UNREACHABLE":
                raise
