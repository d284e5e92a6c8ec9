"""A namespace on Pulsar as a log.

`pulsar://host:6650[,host2:6650][/tenant/namespace][?admin=http://host:8080&name=value]`
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from headgate.connectors.options import anchored_path, parse_query, query_text
from headgate.connectors.producing import KeyValues, Sink, make_missing, sink_of
from headgate.connectors.pulsar.client import (
    PLAIN,
    TLS,
    ClientSpec,
    bad_option,
    bad_service,
    default_admin,
    find_scheme,
)
from headgate.connectors.pulsar.descriptor import Pulsar
from headgate.connectors.pulsar.names import DEFAULT_NAMESPACE, check_namespace
from headgate.connectors.pulsar.setup import wanted_on_pulsar
from headgate.connectors.setup import TopicRole
from headgate.connectors.topics import MadeTopic, Topics

SCHEMES = (PLAIN, TLS)
ADMIN = "admin"
CONFIG = "config"


@dataclass(frozen=True, slots=True)
class PulsarLog:
    """The topics of one namespace of a cluster."""

    client: ClientSpec
    namespace: str = DEFAULT_NAMESPACE

    @property
    def folder(self) -> None:
        """None: the topics are on a broker."""

    def bind(self, name: str) -> Pulsar:
        """Return the topic with that name in the namespace."""
        return Pulsar(
            name,
            service=self.client.service,
            admin=self.client.admin,
            namespace=self.namespace,
            options=dict(self.client.options),
            config=self.client.config,
        )

    def anchored(self) -> PulsarLog:
        """Return the namespace with the absolute path of the properties file."""
        client = replace(self.client, config=anchored_path(self.client.config))
        return PulsarLog(client, self.namespace)

    def open_topics(self) -> Topics:
        """Return the topics of the namespace."""
        # Embedded topics do not need Pulsar's client library.
        from headgate.connectors.pulsar.topics import PulsarTopics

        return PulsarTopics(self.client, self.namespace)

    def make_topics(
        self, roles: Mapping[str, TopicRole], partitions: int | None
    ) -> tuple[MadeTopic, ...]:
        """Create the missing topics, and return them."""
        return make_missing(self.open_topics(), wanted_on_pulsar, roles, partitions)

    def open_sink(
        self, _roles: Mapping[str, TopicRole], key_values: KeyValues
    ) -> AbstractContextManager[Sink]:
        """Open a sink for existing topics."""
        from headgate.connectors.pulsar.producing import PulsarSender

        return sink_of(PulsarSender(self.client, self.namespace), key_values)

    def __str__(self) -> str:
        client = self.client
        pairs = [] if client.admin == default_admin(client.service) else [(ADMIN, client.admin)]
        pairs += client.options
        if client.config is not None:
            pairs.append((CONFIG, client.config))
        path = "" if self.namespace == DEFAULT_NAMESPACE else f"/{self.namespace}"
        return f"{client.service}{path}{query_text(pairs)}"


def parse_pulsar_log(text: str) -> PulsarLog:
    """Return the namespace for a value of `--on` that begins with `pulsar://` or `pulsar+ssl://`.

    Raises:
        HeadgateError: BAD_SERVERS, BAD_NAMESPACE, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    scheme = find_scheme(text) or ""
    place, _, query = text.removeprefix(scheme).partition("?")
    if "@" in place:
        raise bad_service("a user name and password must not precede the hosts")
    hosts, _, path = place.partition("/")
    namespace = path.rstrip("/")
    options = dict(parse_query(query, fault=bad_option))
    admin, config = options.pop(ADMIN, None), options.pop(CONFIG, None)
    client = ClientSpec.of(scheme + hosts, admin, options, config)
    return PulsarLog(client, check_namespace(namespace) if namespace else DEFAULT_NAMESPACE)
