"""A namespace on Pulsar as the place where a flow's topics are.

`pulsar://host:6650[,host2:6650][/tenant/namespace][?admin=http://host:8080&name=value]`
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.connectors.options import parse_query, query_text
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

SCHEMES = (PLAIN, TLS)
ADMIN = "admin"
CONFIG = "config"


@dataclass(frozen=True, slots=True)
class PulsarLog:
    """The topics of one namespace of a cluster."""

    client: ClientSpec
    namespace: str = DEFAULT_NAMESPACE

    def bind(self, name: str) -> Pulsar:
        """Return the topic of that name in the namespace."""
        return Pulsar(
            name,
            service=self.client.service,
            admin=self.client.admin,
            namespace=self.namespace,
            options=dict(self.client.options),
            config=self.client.config,
        )

    def __str__(self) -> str:
        client = self.client
        pairs = [] if client.admin == default_admin(client.service) else [(ADMIN, client.admin)]
        pairs += client.options
        if client.config is not None:
            pairs.append((CONFIG, client.config))
        path = "" if self.namespace == DEFAULT_NAMESPACE else f"/{self.namespace}"
        return f"{client.service}{path}{query_text(pairs)}"


def parse_pulsar_log(text: str) -> PulsarLog:
    """Return the namespace that a text beginning with `pulsar://` or `pulsar+ssl://` names.

    Raises:
        HeadgateError: BAD_SERVERS, BAD_NAMESPACE, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    scheme = find_scheme(text) or ""
    place, _, query = text.removeprefix(scheme).partition("?")
    if "@" in place:
        raise bad_service("a name and a password stand before the hosts, where none may")
    hosts, _, path = place.partition("/")
    namespace = path.rstrip("/")
    options = dict(parse_query(query, fault=bad_option))
    admin, config = options.pop(ADMIN, None), options.pop(CONFIG, None)
    client = ClientSpec.of(scheme + hosts, admin, options, config)
    return PulsarLog(client, check_namespace(namespace) if namespace else DEFAULT_NAMESPACE)
