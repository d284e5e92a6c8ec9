"""How Pulsar is reached, as a value: its service, its admin API, options of clients, and a file.

Names of options are the Java client's (`ClientBuilder.loadConf`), and `token` is short for its
token plugin. An option that begins with `reader.` or `producer.` is for that kind of client alone.
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
# Options that say what is said elsewhere.
_NAMED_ELSEWHERE = {
    "serviceUrl": "use service='pulsar://host:6650'",
    "webServiceUrl": "use admin='http://host:8080'",
}


@dataclass(frozen=True, slots=True)
class ClientSpec:
    """Two that are equal reach the same cluster in the same way.

    Attributes:
        service: `pulsar://host:port` or `pulsar+ssl://host:port`, more hosts after commas.
        admin: `http://host:port` or `https://host:port` of the admin API.
        options: Names and values, sorted by name; secrets are references.
        config: A properties file that options win over, read when a client is made.
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
        """Return what the kernel reads, which holds references and no secret."""
        return {
            "service": self.service,
            "admin": self.admin,
            "options": dict(self.options),
            "config": anchored_path(self.config),
        }

    def to_text(self) -> str:
        """Return the JSON as text; the same for equal descriptions."""
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
        pairs = (each.rpartition(":") for each in self.service.partition("://")[2].split(","))
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]


def parse_service(text: str) -> str:
    """Return a service with the port of every host.

    Raises:
        HeadgateError: BAD_SERVERS; a text that may hold a password is not in it.
    """
    scheme = find_scheme(text)
    if scheme is None:
        raise bad_service(f"it begins with neither {PLAIN} nor {TLS}")
    hosts = text.removeprefix(scheme).removesuffix("/")
    servers = parse_servers(hosts, port=_PORTS[scheme], fault=bad_service)
    return scheme + ",".join(servers)


def find_scheme(text: object) -> str | None:
    """Return `pulsar://` or `pulsar+ssl://`, whichever a text begins with; None for another."""
    if not isinstance(text, str):
        return None
    return next((scheme for scheme in (PLAIN, TLS) if text.startswith(scheme)), None)


def default_admin(service: str) -> str:
    """Return where the admin API is if nobody says so: at the first host of the service."""
    scheme, port = _ADMIN[TLS if service.startswith(TLS) else PLAIN]
    first = service.partition("://")[2].partition(",")[0]
    return f"{scheme}://{first.rpartition(':')[0]}:{port}"


def parse_admin(text: str) -> str:
    """Return the address of an admin API without a slash at its end.

    Raises:
        HeadgateError: BAD_SERVERS; a text that may hold a password is not in it.
    """
    if not isinstance(text, str) or "@" in text:
        raise _bad_admin("a name and a password stand before the host, where none may")
    found = f"{text.partition('?')[0]!r} is none"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _bad_admin(found) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise _bad_admin(found)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    number = port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{host}:{number}{parts.path.rstrip('/')}"


def check_options(options: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return the options by name as text.

    Raises:
        HeadgateError: BAD_CLIENT_OPTION, SECRET_IN_PLAIN.
    """
    checked = []
    for name, value in sorted(options.items()):
        text = option_text(name, value, fault=bad_option, example="operationTimeoutMs")
        if name in _NAMED_ELSEWHERE:
            raise bad_option(name, "it is named elsewhere", _NAMED_ELSEWHERE[name])
        check_secret(name, text, broker="Pulsar", parts=find_secrets(name, text))
        checked.append((name, text))
    return tuple(checked)


def bad_option(name: str, found: str, hint: str) -> HeadgateError:
    """Return the error for an option that no client can have; values stay out of it."""
    return HeadgateError(
        "BAD_CLIENT_OPTION", f"cannot use option {name!r} of Pulsar's clients: {found}", hint=hint
    )


def bad_service(found: str) -> HeadgateError:
    """Return the error for a service that cannot be one."""
    return HeadgateError(
        "BAD_SERVERS",
        f"cannot reach Pulsar: a service is {PLAIN}host:port, more hosts after commas, and {found}",
        hint=f"use {PLAIN}localhost:6650, or {TLS}host1:6651,host2:6651",
    )


def _bad_admin(found: str) -> HeadgateError:
    return HeadgateError(
        "BAD_SERVERS",
        f"cannot reach the admin API of Pulsar: its address is http://host:port, and {found}",
        hint="use admin=http://localhost:8080",
    )
