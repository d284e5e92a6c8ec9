"""A local Kafka broker.

DIR/, beside the files of every broker (`lifecycle`):
  server.properties   its settings
  kafka/              its records, in Kafka's own form
  secure/             certificates and secrets, if it is secured
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import struct
import subprocess
import uuid
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from headgate._artifacts import Artifact, get_java, read_artifacts, resolve
from headgate._clock import Clock
from headgate.brokers import lifecycle
from headgate.brokers.broker import HOST, LOG4J, find_ports, is_free, write_private
from headgate.brokers.kafka_settings import (
    DATA,
    Ports,
    Security,
    find_security,
    secure,
    server_properties,
)
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
        jars = broker_jars()
        class_path = os.pathsep.join(map(str, resolve(jars, progress=progress, root=jars[0])))
        if options.secure and find_client(folder) is None:
            progress("creating certificates and a password")
            secure(folder)
        security = find_security(folder)
        write_private(folder / "log4j2.properties", LOG4J)
        if not (folder / DATA).is_dir():
            progress("creating the broker's folder")
            self._format(folder, ports, class_path, security)
        text = server_properties(ports, data=DATA, settings=options.settings, security=security)
        write_private(folder / "server.properties", text)
        java = _java(class_path, memory=options.memory)
        facts = {"port": ports.clients, "controller": ports.controller, "inside": ports.inside}
        return [*java, "kafka.Kafka", "server.properties"], facts

    def _choose_ports(self, start: lifecycle.Start) -> Ports:
        """Return the ports: the last ones, as far as they are still free."""
        free, last = find_ports(HOST, 3), start.last
        usual = int(last.get("port", DEFAULT_PORT))
        clients = lifecycle.choose_port(self, start.options, usual, free[0])
        controller = int(last.get("controller", free[1]))
        controller = controller if is_free(HOST, controller) else free[1]
        is_secure = start.options.secure or find_client(start.folder) is not None
        return Ports(clients, controller, free[2] if is_secure else clients)

    def _format(
        self, folder: Path, ports: Ports, class_path: str, security: Security | None
    ) -> None:
        """Create the folder of records; it gets its name when it is complete."""
        making = f".{DATA}.making"
        settings = folder / f"{making}.properties"
        # Left by an earlier try; no other process uses the folder now.
        shutil.rmtree(folder / making, ignore_errors=True)
        text = server_properties(ports, data=making, settings={}, security=security)
        write_private(settings, text)
        command = [*_java(class_path, memory=256 * 1024**2), "kafka.tools.StorageTool", "format"]
        command += ["--config", settings.name, "--cluster-id", _cluster_id(), "--standalone"]
        for user in [] if security is None else security.scram_users:
            command += ["--add-scram", user]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        settings.unlink()
        if done.returncode != 0:
            output = done.stderr or done.stdout
            raise lifecycle.not_started(self, folder, "its folder cannot be created", output)
        (folder / making).rename(folder / DATA)


KAFKA = _Kafka()


def _java(class_path: str, *, memory: int) -> list[str]:
    # With so small a heap, Java's default collector, G1, would take a fifth of the CPU.
    options = [f"-Xmx{memory}", "-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError"]
    options += ["-Djava.awt.headless=true", "-Dlog4j2.configurationFile=log4j2.properties"]
    return [get_java("start Kafka"), *options, "-cp", class_path]


def _cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # A leading dash would be read as an option.
    return f"h{text[1:]}" if text.startswith("-") else text


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
