"""Whether anybody answers where a cluster is said to be."""

from __future__ import annotations

from headgate.connectors.pulsar.admin import Admin
from headgate.connectors.pulsar.client import ClientSpec
from headgate.connectors.pulsar.clients import connect


def reach(client: ClientSpec, *, doing: str) -> None:
    """Return once the service takes connections and its admin API answers.

    Args:
        doing: What it is for, after the word cannot.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, and whatever else Python's client objects to.
    """
    connect(client, doing=doing)
    with Admin(client, doing=doing) as admin:
        admin.get("clusters")
