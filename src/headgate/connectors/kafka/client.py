"""The connection to Kafka as a value: servers, client options, and a properties file.

Options have the Java client's names. `sasl.username`, `sasl.password` and `ssl.ca.location` (a PEM
file) are supported too. The prefixes `consumer.`, `producer.` and `admin.` limit an option to that
kind of client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.connectors.kafka.jaas import find_secrets
from headgate.connectors.options import anchored_path, option_text, parse_servers
from headgate.connectors.references import check_secret
from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject

DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """Equal values connect to the same cluster in the same way.

    Attributes:
        servers: `host:port`, separated by commas.
        options: Names and values, sorted by name; secrets are references.
        config: A properties file, read when a client is created; options override it.
    """

    servers: str
    options: tuple[tuple[str, str], ...] = ()
    config: str | None = None

    @classmethod
    def of(
        cls, servers: str, options: Mapping[str, object] | None = None, config: str | None = None
    ) -> ClientSpec:
        """Return the checked description.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        return cls(parse_kafka_servers(servers), check_options(options or {}), config or None)

    def to_json(self) -> JsonObject:
        """Return the JSON for the kernel, with references instead of secrets."""
        return {
            "servers": self.servers,
            "options": dict(self.options),
            "config": anchored_path(self.config),
        }

    def to_text(self) -> str:
        """Return the JSON as text; equal for equal values."""
        return json.dumps(self.to_json(), sort_keys=True)

    def describe(self) -> str:
        """Return servers, options and file in one line; secrets are references."""
        parts = [f"{name}={value}" for name, value in self.options]
        if self.config is not None:
            parts.append(f"options of {self.config}")
        return f"{self.servers} with {', '.join(parts)}" if parts else self.servers


def parse_kafka_servers(text: str) -> str:
    """Return the servers with their ports, separated by commas.

    Raises:
        HeadgateError: BAD_SERVERS; never quotes a text that may hold a password.
    """
    return ",".join(parse_servers(text, port=DEFAULT_PORT, fault=_bad_servers))


def check_options(options: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the options as text, sorted by name.

    Raises:
        HeadgateError: BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    checked = []
    for name, value in sorted(options.items()):
        text = option_text(name, value, fault=bad_option, example="linger.ms")
        if name == "bootstrap.servers":
            raise bad_option(name, "servers are set elsewhere", "use servers='host:9092'")
        is_login = name.lower().endswith("sasl.jaas.config")
        check_secret(name, text, broker="Kafka", parts=find_secrets(text) if is_login else None)
        checked.append((name, text))
    return tuple(checked)


def bad_option(name: str, problem: str, hint: str) -> HeadgateError:
    """Return the error for an option that is not supported; it never quotes the value."""
    return HeadgateError(
        "BAD_CLIENT_OPTION", f"cannot use option {name!r} of Kafka's clients: {problem}", hint=hint
    )


def _bad_servers(problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVERS",
        f"cannot connect to Kafka: servers must be host:port, separated by commas; {problem}",
        hint="use localhost:9092, or host1:9092,host2:9092",
    )
