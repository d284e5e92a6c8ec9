"""The jars that jobs need besides Spark's: by the kernel's module, and by the scheme of a store."""

from __future__ import annotations

from pathlib import Path

from headgate._artifacts import Artifact, read_artifacts

KAFKA_CLIENTS = Artifact(
    group="org.apache.kafka",
    name="kafka-clients",
    version="4.3.1",
    sha256="52501b7b47510c66f898871adaf6d2968ab7246561d44ced43643a8a587f0b36",
    size=10_204_032,
)

# Pulsar's client shades its dependencies, except for its interfaces, its metrics, and the classes
# that read certificates: without those, TLS does not load.
_PULSAR = (
    Artifact(
        group="org.apache.pulsar",
        name="pulsar-client",
        version="4.0.8",
        sha256="6d97474a63b3ccbddd40c127f85fb6f79f405e221743454d0ef8beec3b3e494e",
        size=27_084_154,
    ),
    Artifact(
        group="org.apache.pulsar",
        name="pulsar-client-api",
        version="4.0.8",
        sha256="3f5f65cc20e70e14e1c689ee95cbc4833be1974550e29ee75f77d5e7c2d245ef",
        size=170_169,
    ),
    Artifact(
        group="org.apache.pulsar",
        name="pulsar-client-admin-api",
        version="4.0.8",
        sha256="d0f489b2b27d6f5cdfc75a3bb0003eade9703582e1a6c9aa0e83644db99076a8",
        size=317_955,
    ),
    Artifact(
        group="io.opentelemetry",
        name="opentelemetry-api",
        version="1.45.0",
        sha256="b5903cf245e3a8ddf95b95031529ebcc70884a76b953798d3093a4ada7fcc140",
        size=158_508,
    ),
    Artifact(
        group="io.opentelemetry",
        name="opentelemetry-api-incubator",
        version="1.45.0-alpha",
        sha256="4a664ae100e727c42d22b099b168cdd4f43ed6fec9dc152f2e3afc6aa1143b03",
        size=64_105,
    ),
    Artifact(
        group="io.opentelemetry",
        name="opentelemetry-context",
        version="1.45.0",
        sha256="9b6dd4a2e758b0fd6da81faa882856085821ec60e1407a1113e1ba13a0eff5e0",
        size=49_307,
    ),
    Artifact(
        group="org.bouncycastle",
        name="bcprov-jdk18on",
        version="1.78.1",
        sha256="add5915e6acfc6ab5836e1fd8a5e21c6488536a8c1f21f386eeb3bf280b702d7",
        size=8_324_412,
    ),
)

_POSTGRES = Artifact(
    group="org.postgresql",
    name="postgresql",
    version="42.7.8",
    sha256="2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7",
    size=1_116_727,
)

CONNECTORS: dict[str, tuple[Artifact, ...]] = {
    "kafka": (KAFKA_CLIENTS,),
    "pulsar": _PULSAR,
    "postgres": (_POSTGRES,),
}

# Hadoop's S3A of PySpark's Hadoop, and the modules of AWS's SDK that it loads: its client for S3,
# copies and roles. The SDK's bundle, which Hadoop names, has all of AWS in 600 MB. HTTP clients,
# Netty and SLF4J are among PySpark's jars.
_S3A = read_artifacts(Path(__file__).with_name("s3a-3.5.0.json"))

STORES: dict[str, tuple[Artifact, ...]] = {"s3a": _S3A}
