"""What a server was started with."""

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
        home: Where its jobs live.
        flows: The folder whose flows may be submitted; None for none.
        on: The log of topics that a flow's headgate.toml does not name one for.
        tokens: Who may come in; empty for everybody on this machine.
        hosts: Names under which the server may be asked for, beside its own address.
        console: Whether it has pages for people.
        only: The one job that it shows; None for every job of the home.
        keeps_up: Whether jobs that were submitted here are started again when they die.
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
        """Where the server keeps its own files."""
        return self.home / "server"

    @property
    def address(self) -> str:
        """What a browser on this machine is pointed to."""
        host = "127.0.0.1" if is_any(self.host) else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def allows_host(self, name: str) -> bool:
        """Tell whether the server may be asked for under a name, without its port.

        A page of another site that has its name point here, to read what only this machine may
        see, still asks for that name.
        """
        known = {*_LOCAL_NAMES, self.host.lower(), *(each.lower() for each in self.hosts)}
        name = name.lower().rstrip(".")
        # Where it listens on every address, any of them is its own; a bare address is no name.
        return name in known or (is_any(self.host) and _is_address(name))


def check_settings(settings: ServerSettings) -> None:
    """Refuse what a server cannot be started with.

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
    """Tell whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_any(host: str) -> bool:
    """Tell whether an address stands for all that the machine has."""
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
