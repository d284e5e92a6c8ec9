"""A Kafka cluster as the place where a flow's topics are: `kafka://host:9092?name=value`."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.connectors.kafka.client import ClientSpec, bad_option
from headgate.connectors.kafka.descriptor import Kafka
from headgate.connectors.options import parse_query, query_text
from headgate.errors import HeadgateError

SCHEME = "kafka://"
CONFIG = "config"


@dataclass(frozen=True, slots=True)
class KafkaLog:
    """The topics of one cluster."""

    client: ClientSpec

    def bind(self, name: str) -> Kafka:
        """Return the topic of that name on the cluster."""
        return Kafka(
            name,
            servers=self.client.servers,
            options=dict(self.client.options),
            config=self.client.config,
        )

    def __str__(self) -> str:
        pairs = [*self.client.options]
        if self.client.config is not None:
            pairs.append((CONFIG, self.client.config))
        return f"{SCHEME}{self.client.servers}{query_text(pairs)}"


def parse_kafka_log(text: str) -> KafkaLog:
    """Return the cluster that a text beginning with `kafka://` names.

    Raises:
        HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    servers, _, query = text.removeprefix(SCHEME).partition("?")
    servers, _, path = servers.partition("/")
    if path:
        raise HeadgateError(
            "BAD_SERVERS",
            f"cannot use {SCHEME}{mask_login(servers)}/{path} as a log: topics are known by their "
            "names in the flow, and none is named here",
            hint=f"use --on {SCHEME}{mask_login(servers)}",
        )
    options = dict(parse_query(query, fault=bad_option))
    config = options.pop(CONFIG, None)
    return KafkaLog(ClientSpec.of(servers, options, config))


def mask_login(servers: str) -> str:
    """Return servers without a name and a password that somebody put before them."""
    return servers.rpartition("@")[2]
