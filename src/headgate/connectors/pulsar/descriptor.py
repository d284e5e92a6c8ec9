"""A namespace on Pulsar, and a topic in it, as values.

Options have the Java client's names (`ClientBuilder.loadConf`); `token` is short for its token
plugin. The prefixes `reader.` and `producer.` limit an option to that kind of client.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import urlsplit

from headgate.connectors.broker.log import BrokerLog, Sender
from headgate.connectors.broker.options import bad_client_option, parse_query, parse_servers
from headgate.connectors.broker.topic import BrokerTopic
from headgate.connectors.contract.setup import SetupOptions, TopicRole
from headgate.connectors.contract.starts import StartSyntax
from headgate.connectors.contract.topics import Topics, WantedTopic
from headgate.connectors.pulsar import login
from headgate.connectors.pulsar.keeping import wanted_on_pulsar
from headgate.connectors.pulsar.names import (
    DEFAULT_NAMESPACE,
    EntryId,
    check_namespace,
    find_entry_id,
    full_name,
)
from headgate.errors import HeadgateError
from headgate.flow.topics import register_topic

PLAIN = "pulsar://"
TLS = "pulsar+ssl://"
SCHEMES = (PLAIN, TLS)

_PORTS = {PLAIN: 6650, TLS: 6651}
_ADMIN = {PLAIN: ("http", 8080), TLS: ("https", 8443)}

bad_option = functools.partial(bad_client_option, "Pulsar")


def _find_position(value: object) -> EntryId | None:
    entry = find_entry_id(value)
    return None if entry is None or entry.ledger < 0 else entry


STARTS = StartSyntax("messages:", "messages:0=12:5,1=13:0", "messages", _find_position)


@dataclass(frozen=True, slots=True)
class PulsarLog(BrokerLog):
    """A namespace of a cluster.

    As text: `pulsar://host:6650[,host2:6650][/tenant/namespace][?admin=http://host:8080&name=value]`

    Attributes:
        service: `pulsar://host:port` or `pulsar+ssl://host:port`, further hosts after commas.
        admin: `http://host:port` or `https://host:port` of the admin API.
        namespace: `tenant/namespace`.
    """

    service: str
    admin: str
    namespace: str = DEFAULT_NAMESPACE

    broker: ClassVar[str] = "Pulsar"
    option: ClassVar[str] = "operationTimeoutMs"
    set_elsewhere: ClassVar[Mapping[str, str]] = {
        "serviceUrl": "use service='pulsar://host:6650'",
        "webServiceUrl": "use admin='http://host:8080'",
    }

    @classmethod
    def of(
        cls,
        service: str,
        admin: str | None = None,
        options: Mapping[str, object] | None = None,
        config: str | os.PathLike[str] | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> PulsarLog:
        """Return the checked namespace.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_NAMESPACE, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        checked = parse_service(service)
        return cls(
            checked,
            default_admin(checked) if admin is None else parse_admin(admin),
            check_namespace(namespace),
            options=cls.check_options(options),
            config=os.fspath(config) if config else None,
        )

    @classmethod
    def parse(cls, text: str) -> PulsarLog:
        """Return the namespace for a value of `--on` that begins with one of `SCHEMES`.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_NAMESPACE, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        scheme = _find_scheme(text)
        place, _, query = text.removeprefix(scheme).partition("?")
        if "@" in place:
            raise _bad_service("a user name and password must not precede the hosts")
        hosts, _, path = place.partition("/")
        options = dict(parse_query(query, broker=cls.broker))
        admin, config = options.pop("admin", None), options.pop("config", None)
        namespace = path.rstrip("/") or DEFAULT_NAMESPACE
        return cls.of(scheme + hosts, admin, options, config, namespace)

    @property
    def cluster(self) -> str:
        return self.service

    @property
    def address(self) -> str:
        is_default = self.namespace == DEFAULT_NAMESPACE
        return self.service if is_default else f"{self.service}/{self.namespace}"

    @property
    def own_options(self) -> tuple[tuple[str, str], ...]:
        """The address of the admin API, unless it is the default."""
        return () if self.admin == default_admin(self.service) else (("admin", self.admin),)

    @staticmethod
    def find_secrets(name: str, value: str) -> list[str] | None:
        return login.find_secrets(name, value)

    def hosts(self) -> list[tuple[str, int]]:
        """Return the hosts and ports of the service, in their order."""
        pairs = (server.rpartition(":") for server in self.service.partition("://")[2].split(","))
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]

    def bind(self, name: str) -> Pulsar:
        return Pulsar(name, **self.fields())

    def open_topics(self) -> Topics:
        # Embedded topics do not need Pulsar's client library.
        from headgate.connectors.pulsar.topics.topics import PulsarTopics

        return PulsarTopics(self)

    def open_sender(self) -> AbstractContextManager[Sender]:
        from headgate.connectors.pulsar.topics.producing import PulsarSender

        return PulsarSender(self)

    def wanted(self, name: str, role: TopicRole, options: SetupOptions) -> WantedTopic:
        return wanted_on_pulsar(name, role, options)


@register_topic
@dataclass(frozen=True, slots=True)
class Pulsar(BrokerTopic):
    """A topic on Pulsar, independent of the flow's other topics.

    Attributes:
        name: The topic's name, in the flow and in its namespace.
        service: `pulsar://host:port` or `pulsar+ssl://host:port`, further hosts after commas; the
            default port is 6650, or 6651 with TLS.
        admin: The address of the admin API; by default `http://HOST:8080`, or `https://HOST:8443`
            with TLS, at the first host.
        namespace: `tenant/namespace`.
        options: Client options by the Java client's names, and `token`; secrets must be references,
            `${env:NAME}` or `${file:/path}`.
        config: A properties file with further options, read when a client is created; a relative
            path starts at the job's working directory.
        pattern: A Java regular expression: all topics of the namespace whose whole name matches are
            read as one, including topics created later. Such a topic cannot be written.
        start: The start of reading without a stored position: `earliest` (the default), `latest`, a
            time (UTC if it has no zone), or `ledger:entry` by partition.
    """

    service: str = field(kw_only=True)
    admin: str | None = field(kw_only=True, default=None)
    namespace: str = field(kw_only=True, default=DEFAULT_NAMESPACE)

    kind: ClassVar[str] = "pulsar"
    starts: ClassVar[StartSyntax] = STARTS

    @property
    def log(self) -> PulsarLog:
        return PulsarLog.of(self.service, self.admin, self.options, self.config, self.namespace)

    @property
    def kernel_name(self) -> str:
        """The full name: `persistent://tenant/namespace/name`."""
        return full_name(self.namespace, self.name)

    @property
    def shown_name(self) -> str:
        """The name, with the namespace if it is not the default."""
        return self.name if self.namespace == DEFAULT_NAMESPACE else f"{self.namespace}/{self.name}"


def parse_service(text: str) -> str:
    """Return a service with the port of every host.

    Raises:
        HeadgateError: BAD_SERVERS; never quotes a text that may hold a password.
    """
    scheme = _find_scheme(text)
    if not scheme:
        raise _bad_service(f"it must begin with {PLAIN} or {TLS}")
    hosts = text.removeprefix(scheme).removesuffix("/")
    return scheme + ",".join(parse_servers(hosts, port=_PORTS[scheme], fault=_bad_service))


def default_admin(service: str) -> str:
    """Return the default address of the admin API, at the first host of the service."""
    scheme, port = _ADMIN[TLS if service.startswith(TLS) else PLAIN]
    first = service.partition("://")[2].partition(",")[0]
    return f"{scheme}://{first.rpartition(':')[0]}:{port}"


def parse_admin(text: str) -> str:
    """Return the address of an admin API without a trailing slash.

    Raises:
        HeadgateError: BAD_SERVERS; never quotes a text that may hold a password.
    """
    if not isinstance(text, str) or "@" in text:
        raise _bad_admin("a user name and password must not precede the host")
    problem = f"got {text.partition('?')[0]!r}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _bad_admin(problem) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise _bad_admin(problem)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    number = port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{host}:{number}{parts.path.rstrip('/')}"


def _find_scheme(text: object) -> str:
    """Return the scheme of a text, or nothing for another scheme."""
    return next((scheme for scheme in SCHEMES if str(text).startswith(scheme)), "")


def _bad_service(problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVERS",
        f"cannot connect to Pulsar: the service must be {PLAIN}host:port, further hosts after "
        f"commas; {problem}",
        hint=f"use {PLAIN}localhost:6650, or {TLS}host1:6651,host2:6651",
    )


def _bad_admin(problem: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVERS",
        "cannot connect to the admin API of Pulsar: its address must be http://host:port; "
        f"{problem}",
        hint="use admin=http://localhost:8080",
    )
