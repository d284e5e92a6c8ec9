"""The settings of a local Kafka broker.

Paths are relative to the broker's folder, the working directory of its process: a comma in an
absolute path would split it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headgate.brokers.broker import HOST, properties
from headgate.brokers.security import AUTHORITY, CLIENT, KEYSTORE, find_secrets, make_security

DATA = "kafka"

# A single broker has no replicas, and a small heap.
_ALONE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "log.retention.hours": "168",
    # By default the cleaner takes 128 MiB of the heap before there is anything to clean.
    "log.cleaner.dedupe.buffer.size": "16777216",
}


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a broker, all on the loopback.

    Attributes:
        clients: The port for users.
        controller: The port of its controller, which is the broker itself.
        inside: The port on which a secured broker connects to itself; otherwise the clients' port.
    """

    clients: int
    controller: int
    inside: int


@dataclass(frozen=True, slots=True)
class Security:
    """The requirements of a secured broker: TLS, and a user with a password.

    Attributes:
        keystore_password: The password of the broker's key and certificate.
    """

    user: str
    password: str
    keystore_password: str

    @property
    def scram_users(self) -> list[str]:
        """The user, as the formatting tool reads it."""
        return [
            f"{mechanism}=[name={self.user},password={self.password}]"
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        ]


def find_security(folder: Path) -> Security | None:
    """Return the security of a folder's broker; None for an open broker."""
    known = find_secrets(folder)
    if known is None:
        return None
    return Security(known["user"], known["password"], known["keystore_password"])


def secure(folder: Path) -> None:
    """Create certificates, and a user with a password."""
    user, password = "headgate", secrets.token_urlsafe(18)
    client = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": str(folder / AUTHORITY),
    }
    known = {"user": user, "password": password}
    make_security(folder, known, {CLIENT: properties(client).encode()})


def server_properties(
    ports: Ports, *, data: str, settings: Mapping[str, str], security: Security | None = None
) -> str:
    """Return the broker's settings file: broker and controller in one process.

    Args:
        data: The folder of records, relative to the broker's folder.
        settings: The user's settings; they override the others.
    """
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "log.dirs": data,
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        **(_plain(ports) if security is None else _secured(ports, security)),
        **_ALONE,
        **settings,
    }
    return properties(lines)


def _plain(ports: Ports) -> dict[str, str]:
    clients = f"PLAINTEXT://{HOST}:{ports.clients}"
    return {
        "listeners": f"{clients},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": clients,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


def _secured(ports: Ports, security: Security) -> dict[str, str]:
    modules = "org.apache.kafka.common.security"
    user, password = security.user, security.password
    named = f"{modules}.plain.PlainLoginModule required user_{user}={_quoted(password)};"
    scram = f"{modules}.scram.ScramLoginModule required;"
    clients, inside = f"SASL_SSL://{HOST}:{ports.clients}", f"INSIDE://{HOST}:{ports.inside}"
    return {
        "listeners": f"{clients},{inside},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"{clients},{inside}",
        "listener.security.protocol.map": (
            "SASL_SSL:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.sasl_ssl.plain.sasl.jaas.config": named,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": KEYSTORE,
        "ssl.keystore.password": security.keystore_password,
    }


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
