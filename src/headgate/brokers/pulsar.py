"""A local Pulsar broker.

DIR/, beside the files of every broker (`lifecycle`):
  standalone.conf   its settings
  pulsar/           its records and its metadata, in Pulsar's own form
  secure/           certificates and secrets, if it is secured
  tmp/              files that its process unpacks; emptied at each start
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from headgate._clock import Clock
from headgate.brokers import lifecycle
from headgate.brokers.broker import DEFAULT_MEMORY, HOST, LOG, find_ports, is_free
from headgate.brokers.class_archive import get_archive, use_archive
from headgate.brokers.process import Process, start_process
from headgate.brokers.pulsar_distribution import get_distribution
from headgate.brokers.pulsar_health import is_registering, is_serving
from headgate.brokers.pulsar_process import java_command, write_settings
from headgate.brokers.pulsar_settings import DATA, LEDGERS, Ports, find_security, secure
from headgate.brokers.security import find_client
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
    stop_signal = signal.SIGTERM

    def url(self, folder: Path, facts: lifecycle.Facts) -> str:
        client, address = find_client(folder), lifecycle.address_of(facts)
        if client is None:
            return f"pulsar://{address}?admin={_admin(folder, facts)}"
        config = quote(str(client))
        return f"pulsar+ssl://{address}?admin={_admin(folder, facts)}&config={config}"

    def is_serving(self, folder: Path, facts: lifecycle.Facts) -> bool:
        return is_serving(
            _admin(folder, facts), within=_ANSWERS_WITHIN, security=find_security(folder)
        )

    def is_stuck(self, folder: Path, clock: Clock) -> bool:
        return is_registering(folder / LOG, clock)

    def prepare(self, start: lifecycle.Start) -> tuple[list[str], lifecycle.Facts]:
        folder, options, progress = start.folder, start.options, start.progress
        ports = self._choose_ports(start)
        distribution = get_distribution(progress=progress)
        if options.secure and find_client(folder) is None:
            progress("creating certificates and a token")
            secure(folder)
        more = use_archive(_get_archive(distribution, start))
        write_settings(folder, ports, settings=options.settings, security=find_security(folder))
        command = java_command(distribution, memory=options.memory, bookie=ports.bookie, more=more)
        return command, {"port": ports.clients, "admin": ports.admin, "bookie": ports.bookie}

    def _choose_ports(self, start: lifecycle.Start) -> Ports:
        """Return the ports: the last ones, as far as they are still free."""
        free, options, last = find_ports(HOST, 3), start.options, start.last
        is_secure = options.secure or find_client(start.folder) is not None
        usual = DEFAULT_SECURE_PORT if is_secure else DEFAULT_PORT
        clients = lifecycle.choose_port(self, options, int(last.get("port", usual)), free[0])
        if options.admin_port is None:
            usual_admin = DEFAULT_SECURE_ADMIN_PORT if is_secure else DEFAULT_ADMIN_PORT
            admin = int(last.get("admin", usual_admin if clients == usual else free[1]))
            # A default port may be replaced by another.
            admin = admin if is_free(HOST, admin) else free[1]
        else:
            admin = options.admin_port or free[1]
            lifecycle.check_free(self, admin, options)
        return Ports(clients, admin, self._choose_bookie(start.folder, free[2]))

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


def _get_archive(distribution: Path, start: lifecycle.Start) -> Path | None:
    def launch(folder: Path, more: Sequence[str]) -> Process:
        ports = Ports(*find_ports(HOST, 3))
        write_settings(folder, ports, settings={}, security=None)
        return start_process(
            java_command(distribution, memory=DEFAULT_MEMORY, bookie=ports.bookie, more=more),
            folder / "broker.json",
            output=folder / "log" / "broker.out",
            facts={"admin": ports.admin},
            clock=start.clock,
        )

    return get_archive(
        distribution,
        launch,
        lambda process: is_serving(
            f"http://{HOST}:{process.facts['admin']}", within=_ANSWERS_WITHIN
        ),
        progress=start.progress,
        clock=start.clock,
    )


def find_bookie(folder: Path) -> int | None:
    """Return the port of a folder's storage; None before the first start."""
    try:
        cookie = (folder / LEDGERS / "current" / "VERSION").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    match = re.search(r'bookieHost: "[^"]*:([0-9]+)"', cookie)
    return None if match is None else int(match[1])


def _admin(folder: Path, facts: lifecycle.Facts) -> str:
    scheme = "http" if find_client(folder) is None else "https"
    return f"{scheme}://{HOST}:{facts['admin']}"
