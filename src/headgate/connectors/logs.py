"""Logs: where the topics of a flow lie that are known by name alone."""

from __future__ import annotations

from dataclasses import replace

from headgate.connectors.connector import Log
from headgate.connectors.registry import CONNECTORS
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.operators import Node, Output, Source
from headgate.flow.topics import LogicalTopic, Topic

DEFAULT_LOG = "files:.headgate/topics"


def parse_log(text: str) -> Log:
    """Return the log that `--on` names.

    Raises:
        HeadgateError: LOG_UNSUPPORTED; and what is wrong with the servers or options of a broker.
    """
    for connector in CONNECTORS.values():
        log = connector.find_log(text)
        if log is not None:
            return log
    raise HeadgateError(
        "LOG_UNSUPPORTED",
        f"cannot use {_without_secrets(text)!r} as a log: there are embedded topics, Kafka and "
        "Pulsar",
        hint="use --on files:DIR, --on kafka://HOST:9092 or --on pulsar://HOST:6650, or leave it "
        "out for files:.headgate/topics",
    )


def anchored(text: str) -> str:
    """Return what `--on` names with its files named from the root, to be read from anywhere.

    Raises:
        HeadgateError: As `parse_log` does.
    """
    return str(parse_log(text).anchored())


def _without_secrets(text: str) -> str:
    """Return a text without the parts in which somebody may have put a password."""
    return text.partition("?")[0].rpartition("@")[2]


def bind(graph: Graph, log: Log) -> Graph:
    """Return the flow with every topic bound; those bound on their own stay as they are."""
    return Graph(
        graph.name,
        tuple(_bind_node(node, log) for node in graph.nodes),
        _bind_topic(graph.dead_letters, log),
    )


def _bind_node(node: Node, log: Log) -> Node:
    if isinstance(node, Source | Output):
        return replace(node, topic=_bind_topic(node.topic, log))
    return node


def _bind_topic(topic: Topic, log: Log) -> Topic:
    return log.bind(topic.name) if isinstance(topic, LogicalTopic) else topic
