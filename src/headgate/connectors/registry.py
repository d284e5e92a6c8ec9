"""All connectors, by the kind of their topics. A new connector is one line here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headgate.connectors.contract.connector import Audit, Connector
from headgate.connectors.files.connector import FilesConnector
from headgate.connectors.folder.connector import FolderConnector
from headgate.connectors.kafka.connector import KafkaConnector
from headgate.connectors.postgres.connector import PostgresConnector
from headgate.connectors.pulsar.connector import PulsarConnector
from headgate.errors import Domain, HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.topics import Topic

_ALL: tuple[Connector[Any], ...] = (
    FilesConnector(),
    FolderConnector(),
    KafkaConnector(),
    PulsarConnector(),
    PostgresConnector(),
)
CONNECTORS = {connector.kind: connector for connector in _ALL}


def find_connector(topic: Topic | None) -> Connector[Any] | None:
    """Return the connector of a topic; None for the console, or an unbound name."""
    return None if topic is None else CONNECTORS.get(topic.kind)


def get_connector(topic: Topic) -> Connector[Any]:
    """Return the connector of a topic.

    Raises:
        HeadgateError: TOPIC_UNBOUND.
    """
    connector = find_connector(topic)
    if connector is None:
        raise HeadgateError(
            "TOPIC_UNBOUND",
            f"cannot run topic {topic.name!r}: no connector of this release supports "
            f"{topic.describe()}",
            hint="bind it with --on files:DIR, --on kafka://HOST:9092 or --on pulsar://HOST:6650",
            domain=Domain.USER,
        )
    return connector


def find_audit(topic: Topic) -> Audit[Any] | None:
    """Return the audit part of a topic's connector; None if audits are not supported."""
    connector = find_connector(topic)
    return None if connector is None else connector.audit


def get_audit(topic: Topic) -> Audit[Any]:
    """Return the audit part of a topic's connector, which must support audits."""
    audit = find_audit(topic)
    assert audit is not None, f"{topic.describe()} cannot be audited"
    return audit


def clusters_of(topics: Iterable[Topic]) -> dict[str, Topic]:
    """Return the first topic of each cluster, by the cluster's connection."""
    by_cluster: dict[str, Topic] = {}
    for topic in topics:
        connector = find_connector(topic)
        cluster = None if connector is None else connector.find_cluster(topic)
        if cluster is not None:
            by_cluster.setdefault(cluster, topic)
    return by_cluster


def check_brokers(graph: Graph) -> None:
    """Refuse a flow whose brokers do not respond within seconds.

    For a job that has never run: its user has most likely named the wrong servers. A job that has
    run may wait for its brokers, as its restart strategy says.

    Raises:
        HeadgateError: BROKER_UNREACHABLE.
    """
    for topic in clusters_of(graph.topics()).values():
        try:
            get_connector(topic).reach(topic, f"run job {graph.name!r}")
        except HeadgateError as error:
            # Other complaints of this client, such as a JKS store, may not affect the job's client.
            if error.code == "BROKER_UNREACHABLE":
                raise
