"""Logs: where the topics of a flow lie that are known by name alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from headgate.connectors.files.descriptor import Files
from headgate.connectors.kafka.log import SCHEME as KAFKA
from headgate.connectors.kafka.log import KafkaLog, parse_kafka_log
from headgate.connectors.pulsar.log import SCHEMES as PULSAR
from headgate.connectors.pulsar.log import PulsarLog, parse_pulsar_log
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.operators import Node, Output, Source
from headgate.flow.topics import LogicalTopic, Topic

DEFAULT_LOG = "files:.headgate/topics"


class Log(Protocol):
    """Binds names to topics."""

    def bind(self, name: str) -> Topic:
        """Return the topic of that name on this log."""

    def __str__(self) -> str:
        """Return the text that `parse_log` reads."""


@dataclass(frozen=True, slots=True)
class FilesLog:
    """A folder with one folder per topic."""

    root: Path

    def bind(self, name: str) -> Files:
        """Return the topic in the folder of that name."""
        return Files(name, dir=self.root / name)

    def __str__(self) -> str:
        return f"files:{self.root}"


def parse_log(text: str) -> Log:
    """Return the log that `--on` names.

    Raises:
        HeadgateError: LOG_UNSUPPORTED; and what is wrong with the servers or options of a broker.
    """
    scheme, colon, rest = text.partition(":")
    if scheme == "files" and colon and rest:
        return FilesLog(Path(rest))
    if text.startswith(KAFKA):
        return parse_kafka_log(text)
    if text.startswith(PULSAR):
        return parse_pulsar_log(text)
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
    log = parse_log(text)
    match log:
        case FilesLog(root):
            return str(FilesLog(root.absolute()))
        case KafkaLog(client) if client.config is not None:
            return str(KafkaLog(replace(client, config=str(Path(client.config).absolute()))))
        case PulsarLog(client, namespace) if client.config is not None:
            anchor = str(Path(client.config).absolute())
            return str(PulsarLog(replace(client, config=anchor), namespace))
        case _:
            return str(log)


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
