"""The connection to Pulsar as a value: service, admin API, client options, and a properties file.

Options have the Java client's names (`ClientBuilder.loadConf`); `token` is short for its token
plugin. The prefixes `reader.` and `producer.` limit an option to that kind of client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from headgate.connectors.options import anchored_path, option_text, parse_servers
from headgate.connectors.pulsar.login import find_secrets
from headgate.connectors.references import check_secret
from headgate.errors import HeadgateError
from headgate.flow.json_values import JsonObject

PLAIN = "pulsar://"
TLS = "pulsar+ssl://"

_PORTS = {PLAIN: 6650, TLS: 6651}
_ADMIN = {PLAIN: ("http", 8080), TLS: ("https", 8443)}
# Options that are set elsewhere.
_NAMED_ELSEWHERE = {
    "serviceUrl": "use service='pulsar://host:6650'",
    "webServiceUrl": "use admin='http://host:8080'",
}


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """Equal values connect to the same cluster in the same way.

    Attributes:
        service: `pulsar://host:port` or `pulsar+ssl://host:port`, further hosts after commas.
        admin: `http://host:port` or `https://host:port` of the admin API.
        options: Names and values, sorted by name; secrets are references.
        config: A properties file, read when a client is created; options override it.
    """

    service: str
    admin: str
    options: tuple[tuple[str, str], ...] = ()
    config: str | None = None

    @classmethod
    def of(
        cls,
        service: str,
        admin: str | None = None,
        options: Mapping[str, object] | None = None,
        config: str | None = None,
    ) -> ClientSpec:
        """Return the checked description.

        Raises:
            HeadgateError: BAD_SERVERS, BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
        """
        checked = parse_service(service)
        address = default_admin(checked) if admin is None else parse_admin(admin)
        return cls(checked, address, check_options(options or {}), config or None)

    def to_json(self) -> JsonObject:
        """Return the JSON for the kernel, with references instead of secrets."""
        return {
            "service": self.service,
            "admin": self.admin,
            "options": dict(self.options),
            "config": anchored_path(self.config),
        }

    def to_text(self) -> str:
        """Return the JSON as text; equal for equal values."""
        return json.dumps(self.to_json(), sort_keys=True)

    def describe(self) -> str:
        """Return service, options and file in one line; secrets are references."""
        parts = [f"{name}={value}" for name, value in self.options]
        if self.admin != default_admin(self.service):
            parts.append(f"its admin API at {self.admin}")
        if self.config is not None:
            parts.append(f"options of {self.config}")
        return f"{self.service} with {', '.join(parts)}" if parts else self.service

    def hosts(self) -> list[tuple[str, int]]:
        """Return the hosts and ports of the service, in their order."""
        pairs = (server.rpartition(":") for server in self.service.partition("://")[2].split(","))
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]


def parse_service(text: str) -> str:
    """Return a service with the port of every host.

    Raises:
        HeadgateError: BAD_SERVERS; never quotes a text that may hold a password.
    """
    scheme = find_scheme(text)
    if scheme is None:
        raise bad_service(f"it must begin with {PLAIN} or {TLS}")
    hosts = text.removeprefix(scheme).removesuffix("/")
    servers = parse_servers(hosts, port=_PORTS[scheme], fault=bad_service)
    return scheme + ",".join(servers)


def find_scheme(text: object) -> str | None:
    """Return the scheme of a text, `pulsar://` or `pulsar+ssl://`; None for another."""
    if not isinstance(text, str):
        return None
    return next((scheme for scheme in (PLAIN, TLS) if text.startswith(scheme)), None)


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


def check_options(options: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the options as text, sorted by name.

    Raises:
        HeadgateError: BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    checked = []
    for name, value in sorted(options.items()):
        text = option_text(name, value, fault=bad_option, example="operationTimeoutMs")
        if name in _NAMED_ELSEWHERE:
            raise bad_option(name, "it is set elsewhere", _NAMED_ELSEWHERE[name])
        check_secret(name, text, broker="Pulsar", parts=find_secrets(name, text))
        checked.append((name, text))
    return tuple(checked)


def bad_option(name: str, problem: str, hint: str) -> HeadgateError:
    """Return the error for an option that is not supported; it never quotes the value."""
    return HeadgateError(
        "BAD_CLIENT_OPTION", f"cannot use option {name!r} of Pulsar's clients: {problem}", hint=hint
    )


def bad_service(problem: str) -> HeadgateError:
    """Return the error for a service that is not valid."""
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
