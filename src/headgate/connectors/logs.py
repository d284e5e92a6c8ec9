"""Logs: the places of topics that a flow names only by name."""

from __future__ import annotations

from dataclasses import replace

from headgate.connectors.contract.connector import Log
from headgate.connectors.registry import CONNECTORS
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Node, Output, Source, SourceKind
from headgate.flow.topics import LogicalTopic, Topic, check_stream

DEFAULT_LOG = "files:.headgate/topics"


def parse_log(text: str) -> Log:
    """Return the log for a value of `--on`.

    Raises:
        HeadgateError: LOG_UNSUPPORTED; errors of a broker's servers or options.
    """
    for connector in CONNECTORS.values():
        log = connector.find_log(text)
        if log is not None:
            return log
    raise HeadgateError(
        "LOG_UNSUPPORTED",
        f"cannot use {_without_secrets(text)!r} as a log: it must be files:, kafka://, pulsar:// "
        "or postgresql://",
        hint="use --on files:DIR, --on kafka://HOST:9092 or --on pulsar://HOST:6650, or omit it "
        "for files:.headgate/topics",
    )


def anchored(text: str) -> str:
    """Return a value of `--on` with absolute paths.

    Raises:
        HeadgateError: As in `parse_log`.
    """
    return str(parse_log(text).anchored())


def _without_secrets(text: str) -> str:
    """Return a text without the parts that may hold a password."""
    return text.partition("?")[0].rpartition("@")[2]


def bind(graph: Graph, log: Log) -> Graph:
    """Return the flow with every topic bound; topics that are bound already are unchanged."""
    return Graph(
        graph.name,
        tuple(_bind_node(node, log) for node in graph.nodes),
        _bind_topic(graph.dead_letters, log),
        graph.names,
    )


def _bind_node(node: Node, log: Log) -> Node:
    if isinstance(node, Source | Output):
        bound = replace(node, topic=_bind_topic(node.topic, log))
        if isinstance(bound, Source) and bound.kind is SourceKind.STREAM:
            check_stream(bound.topic, f"cannot read stream {bound.id!r}")
        return bound
    return node


def _bind_topic(topic: Topic, log: Log) -> Topic:
    return log.bind(topic.name) if isinstance(topic, LogicalTopic) else topic
