"""The process of a local Pulsar broker: the content of its folder, and its command."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate._artifacts import get_java
from headgate._disk import replace_file
from headgate.brokers.pulsar_settings import (
    LEDGERS,
    LOG4J,
    METADATA,
    Ports,
    Security,
    standalone_conf,
)

# From Pulsar's own start script for Java 17: Netty, RocksDB and its metrics need these.
_OPENED = (
    "java.base/java.io",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)
_TEMPORARY = "tmp"
_DRIVERS = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata"
_SETTINGS = {
    "java.awt.headless": "true",
    "java.io.tmpdir": _TEMPORARY,
    "java.net.preferIPv4Stack": "true",
    "log4j2.configurationFile": "log4j2.properties",
    "log4j2.is.webapp": "false",
    # The broker shuts it down itself, after its last log lines.
    "log4j.shutdownHookEnabled": "false",
    "io.netty.tryReflectionSetAccessible": "true",
    "io.netty.recycler.maxCapacityPerThread": "4096",
    "pulsar.allocator.exit_on_oom": "true",
    "bookkeeper.metadata.bookie.drivers": f"{_DRIVERS}BookieDriver",
    "bookkeeper.metadata.client.drivers": f"{_DRIVERS}ClientDriver",
}
_MAIN = "org.apache.pulsar.PulsarStandaloneStarter"


def write_settings(
    folder: Path, ports: Ports, *, settings: Mapping[str, str], security: Security | None
) -> None:
    """Write the files that the process reads into a broker's folder."""
    (folder / "log").mkdir(exist_ok=True)
    # A killed process leaves its unpacked files there.
    shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
    (folder / _TEMPORARY).mkdir()
    replace_file(folder / "log4j2.properties", LOG4J, mode=0o600)
    text = standalone_conf(ports, settings=settings, security=security)
    replace_file(folder / "standalone.conf", text, mode=0o600)


def java_command(
    distribution: Path, *, memory: int, bookie: int, more: Sequence[str] = ()
) -> list[str]:
    """Return the command of a broker; it runs in the broker's folder.

    Args:
        memory: The size of its heap in bytes; buffers take up to as much again.
        bookie: The port of its storage, at the first start.
        more: Further options of Java.
    """
    options = [f"-Xmx{memory}", f"-XX:MaxDirectMemorySize={memory}", "-XX:+UseParallelGC"]
    options += ["-XX:+ExitOnOutOfMemoryError", "-XX:+PerfDisableSharedMem", *more]
    for opened in _OPENED:
        options += ["--add-opens", f"{opened}=ALL-UNNAMED"]
    options += [f"-D{name}={value}" for name, value in _SETTINGS.items()]
    # With an absolute folder, Pulsar would turn the path into an address without blanks.
    words = ["--config", "standalone.conf", "--metadata-url", f"rocksdb:{METADATA}"]
    words += ["--bookkeeper-dir", LEDGERS, "--bookkeeper-port", str(bookie)]
    words += ["--no-functions-worker", "--no-stream-storage"]
    class_path = f"{distribution / 'lib'}/*"
    return [get_java("start Pulsar"), *options, "-cp", class_path, _MAIN, *words]
