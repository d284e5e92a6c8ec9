"""The process of a local Kafka broker: the content of its folder, and its command."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from headgate._artifacts import get_java
from headgate._disk import replace_file
from headgate.brokers.broker import LOG4J
from headgate.brokers.kafka_settings import DATA, Ports, Security, server_properties

_TOOL_MEMORY = 256 * 1024**2


def write_settings(
    folder: Path, ports: Ports, *, settings: Mapping[str, str], security: Security | None
) -> None:
    """Write the files that the process reads into a broker's folder."""
    (folder / "log").mkdir(exist_ok=True)
    replace_file(folder / "log4j2.properties", LOG4J, mode=0o600)
    text = server_properties(ports, data=DATA, settings=settings, security=security)
    replace_file(folder / "server.properties", text, mode=0o600)


def java_command(jars: Sequence[Path], *, memory: int, more: Sequence[str] = ()) -> list[str]:
    """Return the command of a broker; it runs in the broker's folder.

    Args:
        memory: The size of its heap in bytes.
        more: Further options of Java.
    """
    return [*_java(jars, memory=memory, more=more), "kafka.Kafka", "server.properties"]


def create_data(
    folder: Path,
    ports: Ports,
    jars: Sequence[Path],
    *,
    security: Security | None,
    more: Sequence[str] = (),
) -> str | None:
    """Create the folder of records, named when it is complete; return what Kafka says if it fails.

    Args:
        more: Further options of Java.
    """
    making = f".{DATA}.making"
    settings = folder / f"{making}.properties"
    # Left by an earlier try; no other process uses the folder now.
    shutil.rmtree(folder / making, ignore_errors=True)
    text = server_properties(ports, data=making, settings={}, security=security)
    replace_file(settings, text, mode=0o600)
    command = [*_java(jars, memory=_TOOL_MEMORY, more=more), "kafka.tools.StorageTool", "format"]
    command += ["--config", settings.name, "--cluster-id", _cluster_id(), "--standalone"]
    for user in [] if security is None else security.scram_users:
        command += ["--add-scram", user]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    settings.unlink()
    if done.returncode != 0:
        return done.stderr or done.stdout
    (folder / making).rename(folder / DATA)
    return None


def _java(jars: Sequence[Path], *, memory: int, more: Sequence[str]) -> list[str]:
    # With so small a heap, Java's default collector, G1, would take a fifth of the CPU.
    options = [f"-Xmx{memory}", "-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError", *more]
    options += ["-Djava.awt.headless=true", "-Dlog4j2.configurationFile=log4j2.properties"]
    return [get_java("start Kafka"), *options, "-cp", os.pathsep.join(map(str, jars))]


def _cluster_id() -> str:
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # A leading dash would be read as an option.
    return f"h{text[1:]}" if text.startswith("-") else text
