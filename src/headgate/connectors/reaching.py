"""Whether brokers answer where a flow's topics are."""

from __future__ import annotations

from headgate.connectors.registry import clusters_of, get_connector
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph


def check_brokers(graph: Graph) -> None:
    """Refuse a flow whose brokers do not answer, within seconds.

    For a job that never ran: its user has most likely named the wrong servers. One that has may
    wait for brokers that are down, as its restart strategy says.

    Raises:
        HeadgateError: BROKER_UNREACHABLE.
    """
    for topic in clusters_of(graph.topics()).values():
        try:
            get_connector(topic).reach(topic, f"run job {graph.name!r}")
        except HeadgateError as error:
            # Whatever else this client objects to, such as a JKS store, may be fine with the job's.
            if error.code == "BROKER_UNREACHABLE":
                raise
