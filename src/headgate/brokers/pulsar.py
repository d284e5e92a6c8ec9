"""A local Pulsar broker: fetched, started and stopped.

DIR/, beside what every broker has there:
  standalone.conf   what it is told
  pulsar/           its records and its metadata, in Pulsar's own form
  secure/           of a secured one: certificates, the token, a file for clients
  tmp/              what its process unpacks; emptied at each start
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from headgate._artifacts import Progress
from headgate._clock import Clock
from headgate.brokers import lifecycle
from headgate.brokers.broker import HOST, LOG, BrokerOptions, find_ports, is_free
from headgate.brokers.process import Process, start_process
from headgate.brokers.pulsar_answer import is_serving
from headgate.brokers.pulsar_classes import get_classes
from headgate.brokers.pulsar_distribution import get_distribution
from headgate.brokers.pulsar_process import java_command, write_settings
from headgate.brokers.pulsar_registering import is_registering
from headgate.brokers.pulsar_security import find_security, make_security
from headgate.brokers.pulsar_settings import DATA, LEDGERS, Ports, Security
from headgate.errors import HeadgateError

DEFAULT_PORT = 6650
DEFAULT_ADMIN_PORT = 8080
DEFAULT_SECURE_PORT = 6651
DEFAULT_SECURE_ADMIN_PORT = 8443
_ANSWERS_WITHIN = timedelta(seconds=2)


class _Pulsar:
    """The Pulsar part of a broker's lifecycle."""

    kind = "pulsar"
    name = "Pulsar"
    data = DATA

    def find_client(self, folder: Path) -> Path | None:
        access = find_security(folder)
        return None if access is None else access.file

    def address(self, facts: Mapping[str, str | int]) -> str:
        return f"{HOST}:{facts['port']}"

    def url(self, folder: Path, facts: Mapping[str, str | int]) -> str:
        client, address = self.find_client(folder), self.address(facts)
        if client is not None:
            config = quote(str(client))
            return f"pulsar+ssl://{address}?admin={_admin(folder, facts)}&config={config}"
        return f"pulsar://{address}?admin={_admin(folder, facts)}"

    def is_serving(self, folder: Path, facts: Mapping[str, str | int]) -> bool:
        access, admin = find_security(folder), _admin(folder, facts)
        if access is None:
            return is_serving(admin, within=_ANSWERS_WITHIN)
        headers, trust = access.headers(), access.trust()
        return is_serving(admin, within=_ANSWERS_WITHIN, headers=headers, trust=trust)

    def is_stuck(self, folder: Path, clock: Clock) -> bool:
        return is_registering(folder / LOG, clock)

    def launch(
        self,
        folder: Path,
        options: BrokerOptions,
        last: Mapping[str, str | int],
        progress: Progress,
        clock: Clock,
    ) -> Process:
        ports = self._choose_ports(folder, options, last)
        distribution = get_distribution(progress=progress)
        security = _get_security(folder, options, progress)
        classes = get_classes(distribution, progress=progress, clock=clock)
        more = [] if classes is None else [f"-XX:SharedArchiveFile={classes}"]
        write_settings(folder, ports, settings=options.settings, security=security)
        progress("starting the broker")
        return start_process(
            java_command(distribution, memory=options.memory, bookie=ports.bookie, more=more),
            folder / lifecycle.FILE,
            output=folder / lifecycle.OUTPUT,
            facts={"port": ports.clients, "admin": ports.admin, "bookie": ports.bookie},
            clock=clock,
        )

    def _choose_ports(
        self, folder: Path, options: BrokerOptions, last: Mapping[str, str | int]
    ) -> Ports:
        """Return the ports: the last ones, as far as they are still free."""
        free = find_ports(HOST, 3)
        is_secure = options.secure or find_security(folder) is not None
        usual = DEFAULT_SECURE_PORT if is_secure else DEFAULT_PORT
        clients = last.get("port", usual) if options.port is None else options.port
        clients = int(clients) or free[0]
        lifecycle.check_free(self, clients, options)
        if options.admin_port is None:
            usual_admin = DEFAULT_SECURE_ADMIN_PORT if is_secure else DEFAULT_ADMIN_PORT
            admin = int(last.get("admin", usual_admin if clients == usual else free[1]))
            # A default port may be replaced by another.
            admin = admin if is_free(HOST, admin) else free[1]
        else:
            admin = options.admin_port or free[1]
            lifecycle.check_free(self, admin, options)
        return Ports(clients, admin, self._choose_bookie(folder, free[2]))

    def _choose_bookie(self, folder: Path, free: int) -> int:
        """Return the port of the storage, which never changes after the first start."""
        port = find_bookie(folder)
        if port is not None and not is_free(HOST, port):
            raise HeadgateError(
                "BROKER_PORT_TAKEN",
                f"cannot start Pulsar in {folder}: its storage is bound to port {port}, and "
                "another program listens there",
                hint=f"end that program; this shows it: ss -ltnp 'sport = :{port}'",
            )
        return free if port is None else port


PULSAR = _Pulsar()


def find_bookie(folder: Path) -> int | None:
    """Return the port of a folder's storage; None before the first start."""
    try:
        cookie = (folder / LEDGERS / "current" / "VERSION").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    match = re.search(r'bookieHost: "[^"]*:([0-9]+)"', cookie)
    return None if match is None else int(match[1])


def _admin(folder: Path, facts: Mapping[str, str | int]) -> str:
    scheme = "http" if find_security(folder) is None else "https"
    return f"{scheme}://{HOST}:{facts['admin']}"


def _get_security(folder: Path, options: BrokerOptions, progress: Progress) -> Security | None:
    known = find_security(folder)
    if known is None and options.secure:
        progress("creating certificates and a token")
        known = make_security(folder)
    return None if known is None else known.security
