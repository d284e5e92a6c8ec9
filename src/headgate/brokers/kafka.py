"""A local Kafka broker: fetched, formatted, started and stopped.

DIR/, beside what every broker has there:
  server.properties   what it is told
  kafka/              its records, in Kafka's own form
  secure/             of a secured one: certificates, the password, a file for clients
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

from headgate._artifacts import Artifact, Progress, get_java, read_artifacts, resolve
from headgate._clock import Clock
from headgate.brokers import lifecycle
from headgate.brokers.broker import (
    HOST,
    LOG4J,
    BrokerOptions,
    find_ports,
    is_free,
    write_private,
)
from headgate.brokers.kafka_answer import is_serving
from headgate.brokers.kafka_security import find_security, make_security
from headgate.brokers.kafka_settings import DATA, Ports, Security, server_properties
from headgate.brokers.process import Process, start_process

VERSION = "4.3.1"
DEFAULT_PORT = 9092
_ANSWERS_WITHIN = timedelta(seconds=2)


def broker_jars() -> tuple[Artifact, ...]:
    """Return the jars of the broker; the first one needs most of the others."""
    return read_artifacts(Path(__file__).with_name(f"kafka-{VERSION}.json"))


class _Kafka:
    """The Kafka part of a broker's lifecycle."""

    kind = "kafka"
    name = "Kafka"
    data = DATA

    def find_client(self, folder: Path) -> Path | None:
        access = find_security(folder)
        return None if access is None else access.file

    def address(self, facts: Mapping[str, str | int]) -> str:
        return f"{HOST}:{facts['port']}"

    def url(self, folder: Path, facts: Mapping[str, str | int]) -> str:
        client = self.find_client(folder)
        config = "" if client is None else f"?config={quote(str(client))}"
        return f"kafka://{self.address(facts)}{config}"

    def is_serving(self, folder: Path, facts: Mapping[str, str | int]) -> bool:  # noqa: ARG002
        return is_serving(HOST, int(facts["inside"]), within=_ANSWERS_WITHIN)

    def is_stuck(self, folder: Path, clock: Clock) -> bool:  # noqa: ARG002
        return False

    def launch(
        self,
        folder: Path,
        options: BrokerOptions,
        last: Mapping[str, str | int],
        progress: Progress,
        clock: Clock,
    ) -> Process:
        ports = self._choose_ports(folder, options, last)
        jars = broker_jars()
        class_path = os.pathsep.join(map(str, resolve(jars, progress=progress, root=jars[0])))
        (folder / "log").mkdir(exist_ok=True)
        security = _get_security(folder, options, progress)
        write_private(folder / "log4j2.properties", LOG4J)
        if not (folder / DATA).is_dir():
            progress("creating the broker's folder")
            self._format(folder, ports, class_path, security)
        text = server_properties(ports, data=DATA, settings=options.settings, security=security)
        write_private(folder / "server.properties", text)
        progress("starting the broker")
        return start_process(
            [*_java(class_path, memory=options.memory), "kafka.Kafka", "server.properties"],
            folder / lifecycle.FILE,
            output=folder / lifecycle.OUTPUT,
            facts={"port": ports.clients, "controller": ports.controller, "inside": ports.inside},
            clock=clock,
        )

    def _choose_ports(
        self, folder: Path, options: BrokerOptions, last: Mapping[str, str | int]
    ) -> Ports:
        """Return the ports: the last ones, as far as they are still free."""
        free = find_ports(HOST, 3)
        clients = last.get("port", DEFAULT_PORT) if options.port is None else options.port
        clients = int(clients) or free[0]
        lifecycle.check_free(self, clients, options)
        controller = int(last.get("controller", free[1]))
        controller = controller if is_free(HOST, controller) else free[1]
        is_secure = options.secure or find_security(folder) is not None
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
            said = done.stderr or done.stdout
            raise lifecycle.not_started(self, folder, "its folder cannot be created", said)
        (folder / making).rename(folder / DATA)


KAFKA = _Kafka()


def _get_security(folder: Path, options: BrokerOptions, progress: Progress) -> Security | None:
    known = find_security(folder)
    if known is None and options.secure:
        progress("creating certificates and a password")
        known = make_security(folder)
    return None if known is None else known.security


def _java(class_path: str, *, memory: int) -> list[str]:
    # With so small a heap, Java's default collector, G1, would take a fifth of the CPU.
    options = [f"-Xmx{memory}", "-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError"]
    options += ["-Djava.awt.headless=true", "-Dlog4j2.configurationFile=log4j2.properties"]
    return [get_java("start Kafka"), *options, "-cp", class_path]


def _cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # A leading dash would be read as an option.
    return f"h{text[1:]}" if text.startswith("-") else text
