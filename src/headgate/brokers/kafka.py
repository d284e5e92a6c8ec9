"""A local Kafka broker.

DIR/, beside the files of every broker (`lifecycle`):
  server.properties   its settings
  kafka/              its records, in Kafka's own form
  secure/             certificates and secrets, if it is secured
"""

from __future__ import annotations

import signal
import socket
import struct
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from headgate._artifacts import Artifact, cache_folder, read_artifacts, resolve
from headgate._clock import Clock
from headgate.brokers import lifecycle
from headgate.brokers.broker import DEFAULT_MEMORY, HOST, find_ports, is_free
from headgate.brokers.class_archive import get_archive, use_archive
from headgate.brokers.kafka_process import create_data, java_command, write_settings
from headgate.brokers.kafka_settings import DATA, Ports, find_security, secure
from headgate.brokers.process import Process, start_process
from headgate.brokers.security import find_client

VERSION = "4.3.1"
DEFAULT_PORT = 9092
_ANSWERS_WITHIN = timedelta(seconds=2)
_METADATA = 3
# The last version of the request and response with fixed-size lengths.
_VERSION = 8
_CLIENT = b"headgate"


def broker_jars() -> tuple[Artifact, ...]:
    """Return the jars of the broker; the first one needs most of the others."""
    return read_artifacts(Path(__file__).with_name(f"kafka-{VERSION}.json"))


class _Kafka:
    """The Kafka part of a broker's lifecycle."""

    kind = "kafka"
    name = "Kafka"
    data = DATA
    stop_signal = signal.SIGTERM

    def url(self, folder: Path, facts: lifecycle.Facts) -> str:
        client = find_client(folder)
        config = "" if client is None else f"?config={quote(str(client))}"
        return f"kafka://{lifecycle.address_of(facts)}{config}"

    def is_serving(self, folder: Path, facts: lifecycle.Facts) -> bool:  # noqa: ARG002
        return is_serving(HOST, int(facts["inside"]), within=_ANSWERS_WITHIN)

    def is_stuck(self, folder: Path, clock: Clock) -> bool:  # noqa: ARG002
        return False

    def prepare(self, start: lifecycle.Start) -> tuple[list[str], lifecycle.Facts]:
        folder, options, progress = start.folder, start.options, start.progress
        ports = self._choose_ports(start)
        listed = broker_jars()
        jars = resolve(listed, progress=progress, root=listed[0])
        if options.secure and find_client(folder) is None:
            progress("creating certificates and a password")
            secure(folder)
        security = find_security(folder)
        more = use_archive(_get_archive(jars, start))
        write_settings(folder, ports, settings=options.settings, security=security)
        if not (folder / DATA).is_dir():
            progress("creating the broker's folder")
            output = create_data(folder, ports, jars, security=security, more=more)
            if output is not None:
                raise lifecycle.not_started(self, folder, "its folder cannot be created", output)
        facts = {"port": ports.clients, "controller": ports.controller, "inside": ports.inside}
        return java_command(jars, memory=options.memory, more=more), facts

    def _choose_ports(self, start: lifecycle.Start) -> Ports:
        """Return the ports: the last ones, as far as they are still free."""
        free, last = find_ports(HOST, 3), start.last
        usual = int(last.get("port", DEFAULT_PORT))
        clients = lifecycle.choose_port(self, start.options, usual, free[0])
        controller = int(last.get("controller", free[1]))
        controller = controller if is_free(HOST, controller) else free[1]
        is_secure = start.options.secure or find_client(start.folder) is not None
        return Ports(clients, controller, free[2] if is_secure else clients)


KAFKA = _Kafka()


def _get_archive(jars: Sequence[Path], start: lifecycle.Start) -> Path | None:
    def launch(folder: Path, more: Sequence[str]) -> Process:
        clients, controller = find_ports(HOST, 2)
        ports = Ports(clients, controller, inside=clients)
        write_settings(folder, ports, settings={}, security=None)
        create_data(folder, ports, jars, security=None)
        return start_process(
            java_command(jars, memory=DEFAULT_MEMORY, more=more),
            folder / "broker.json",
            output=folder / "log" / "broker.out",
            facts={"port": ports.clients},
            clock=start.clock,
        )

    return get_archive(
        cache_folder() / f"kafka-{VERSION}",
        launch,
        lambda process: is_serving(HOST, int(process.facts["port"]), within=_ANSWERS_WITHIN),
        jars=jars,
        progress=start.progress,
        clock=start.clock,
    )


def is_serving(host: str, port: int, *, within: timedelta) -> bool:
    """Return True if the broker at this address has joined its cluster and accepts requests.

    It sends one request in Kafka's protocol over a plain socket.
    """
    try:
        with socket.create_connection((host, port), timeout=within.total_seconds()) as link:
            link.sendall(_question())
            (size,) = struct.unpack(">i", _read(link, 4))
            # The request's number, the throttle time, and the number of brokers, which is 0 before
            # the broker has joined its cluster.
            return bool(struct.unpack_from(">iii", _read(link, size))[2] > 0)
    except (OSError, struct.error):
        return False


def _question() -> bytes:
    head = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT)) + _CLIENT
    # No topics are requested, none created, no permissions listed.
    body = head + struct.pack(">i???", 0, False, False, False)
    return struct.pack(">i", len(body)) + body


def _read(link: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = link.recv(size - len(content))
        if not piece:
            raise ConnectionResetError("the broker closed the connection")
        content += piece
    return content
