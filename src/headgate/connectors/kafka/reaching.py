"""Whether anybody answers where a cluster is said to be."""

from __future__ import annotations

from headgate.connectors.kafka.client import ClientSpec
from headgate.connectors.kafka.clients import open_admin


def reach(client: ClientSpec, *, doing: str) -> None:
    """Return once a broker answers.

    Args:
        doing: What it is for, after the word cannot.

    Raises:
        HeadgateError: BROKER_UNREACHABLE, and whatever else Python's client objects to.
    """
    open_admin(client, doing=doing)
