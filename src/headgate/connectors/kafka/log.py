"""A Kafka cluster as a log: `kafka://host:9092?name=value`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from headgate.connectors.kafka.client import ClientSpec, bad_option
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.options import anchored_path, parse_query, query_text
from headgate.connectors.producing import KeyValues, Sink, make_missing, sink_of
from headgate.connectors.setup import TopicRole, wanted_topic
from headgate.connectors.topics import MadeTopic, Topics
from headgate.errors import HeadgateError

SCHEME = "kafka://"
CONFIG = "config"


@dataclass(frozen=True, slots=True)
class KafkaLog:
    """The topics of one cluster."""

    client: ClientSpec

    @property
    def folder(self) -> None:
        """None: the topics are on a broker."""

    def bind(self, name: str) -> Kafka:
        """Return the topic with that name on the cluster."""
        return Kafka(
            name,
            servers=self.client.servers,
            options=dict(self.client.options),
            config=self.client.config,
        )

    def anchored(self) -> KafkaLog:
        """Return the cluster with the absolute path of the properties file."""
        return KafkaLog(replace(self.client, config=anchored_path(self.client.config)))

    def open_topics(self) -> Topics:
        """Return the topics of the cluster."""
        # Embedded topics do not need Kafka's client library.
        from headgate.connectors.kafka.topics import KafkaTopics

        return KafkaTopics(self.client)

    def make_topics(
        self, roles: Mapping[str, TopicRole], partitions: int | None
    ) -> tuple[MadeTopic, ...]:
        """Create the missing topics, and return them."""
        return make_missing(self.open_topics(), wanted_topic, roles, partitions)

    def open_sink(
        self, _roles: Mapping[str, TopicRole], key_values: KeyValues
    ) -> AbstractContextManager[Sink]:
        """Open a sink for existing topics."""
        from headgate.connectors.kafka.producing import KafkaSender

        return sink_of(KafkaSender(self.client), key_values)

    def __str__(self) -> str:
        pairs = [*self.client.options]
        if self.client.config is not None:
            pairs.append((CONFIG, self.client.config))
        return f"{SCHEME}{self.client.servers}{query_text(pairs)}"


def parse_kafka_log(text: str) -> KafkaLog:
    """Return the cluster for a value of `--on` that begins with `kafka://`.

    Raises:
        HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    servers, _, query = text.removeprefix(SCHEME).partition("?")
    servers, _, path = servers.partition("/")
    if path:
        raise HeadgateError(
            "BAD_SERVERS",
            f"cannot use {SCHEME}{mask_login(servers)}/{path} as a log: the flow names the "
            "topics, so the address must not have a path",
            hint=f"use --on {SCHEME}{mask_login(servers)}",
        )
    options = dict(parse_query(query, fault=bad_option))
    config = options.pop(CONFIG, None)
    return KafkaLog(ClientSpec.of(servers, options, config))


def mask_login(servers: str) -> str:
    """Return servers without the user name and password before them."""
    return servers.rpartition("@")[2]
