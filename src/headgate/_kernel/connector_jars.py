"""The jars that the kernel's modules need beside Spark's own, by module."""

from __future__ import annotations

from headgate._artifacts import Artifact

KAFKA_CLIENTS = Artifact(
    group="org.apache.kafka",
    name="kafka-clients",
    version="4.3.1",
    sha256="52501b7b47510c66f898871adaf6d2968ab7246561d44ced43643a8a587f0b36",
    size=10_204_032,
)

CONNECTORS: dict[str, tuple[Artifact, ...]] = {"kafka": (KAFKA_CLIENTS,)}
