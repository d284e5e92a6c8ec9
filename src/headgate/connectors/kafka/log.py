"""A Kafka cluster as the place where a flow's topics are: `kafka://host:9092?name=value`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from headgate.connectors.kafka.client import ClientSpec, bad_option
from headgate.connectors.kafka.descriptor import Kafka
from headgate.errors import HeadgateError

SCHEME = "kafka://"
CONFIG = "config"

# Besides letters and digits: what stands for itself between `?`, `&` and `=`.
_PLAIN = "${}:/,.-_~*@!;()"


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
        query = "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in pairs)
        return f"{SCHEME}{self.client.servers}{'?' if query else ''}{query}"


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
    options = dict(_pairs(query))
    config = options.pop(CONFIG, None)
    return KafkaLog(ClientSpec.of(servers, options, config))


def mask_login(servers: str) -> str:
    """Return servers without a name and a password that somebody put before them."""
    return servers.rpartition("@")[2]


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise bad_option(unquote(name), "it has no value", "write name=value&name=value")
        yield unquote(name), unquote(value)
