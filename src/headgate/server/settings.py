"""The settings of a server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from headgate.connectors.logs import DEFAULT_LOG
from headgate.errors import HeadgateError
from headgate.jobs.values import DEFAULT_HOME
from headgate.server.security.limits import Limits
from headgate.server.security.tokens import Token

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8270
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What a server serves, to whom, and where.

    Attributes:
        home: The folder of its jobs.
        flows: The folder whose flows may be submitted; None for none.
        on: The log of topics, where a flow's headgate.toml does not name one.
        tokens: Tokens of clients; without any, every user of this machine may do everything.
        hosts: Names of the server, beside its own address.
        console: Whether it serves the console.
        only: The one job that it shows; None for every job of the home.
        keeps_up: Whether it starts jobs again that were submitted here and died.
    """

    home: Path = DEFAULT_HOME
    flows: Path | None = None
    on: str = DEFAULT_LOG
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    tokens: tuple[Token, ...] = ()
    hosts: tuple[str, ...] = ()
    console: bool = True
    only: str | None = None
    keeps_up: bool = True
    limits: Limits = field(default_factory=Limits)

    @property
    def folder(self) -> Path:
        """The folder of the server's own files."""
        return self.home / "server"

    @property
    def address(self) -> str:
        """The URL for a browser on this machine."""
        host = "127.0.0.1" if is_any(self.host) else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def allows_host(self, name: str) -> bool:
        """Return whether a host name, without its port, is one of the server.

        A page of another site that points its own name here, to read what only this machine may
        see, still sends that name.
        """
        known = {*_LOCAL_NAMES, self.host.lower(), *(host.lower() for host in self.hosts)}
        name = name.lower().rstrip(".")
        # A server that listens on every address has all of them as names.
        return name in known or (is_any(self.host) and _is_address(name))


def check_settings(settings: ServerSettings) -> None:
    """Refuse settings that a server cannot be started with.

    Raises:
        HeadgateError: TOKEN_NEEDED or FLOWS_NOT_FOUND.
    """
    if not is_loopback(settings.host) and not settings.tokens:
        raise HeadgateError(
            "TOKEN_NEEDED",
            f"cannot serve on {settings.host}: other machines could reach it, and there is no "
            "token",
            hint="export HEADGATE_TOKEN=$(python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))')",
        )
    if settings.flows is not None and not settings.flows.is_dir():
        raise HeadgateError(
            "FLOWS_NOT_FOUND",
            f"cannot serve flows of {settings.flows}: there is no such folder",
            hint=f"mkdir -p {settings.flows}",
        )


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_any(host: str) -> bool:
    """Return whether an address means all addresses of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
