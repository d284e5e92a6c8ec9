"""Whether the brokers of a flow's topics respond."""

from __future__ import annotations

from headgate.connectors.registry import clusters_of, get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph


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
