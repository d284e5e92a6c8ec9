"""Facts about this machine that decide whether jobs can run here; nothing is judged."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from headgate._artifacts import Artifact, find_java, find_missing, jars_folder
from headgate._kernel import jar
from headgate._kernel.connector_jars import CONNECTORS
from headgate.brokers.kafka import broker_jars
from headgate.brokers.postgres import distribution as postgres
from headgate.brokers.pulsar_distribution import count_missing, distribution_folder
from headgate.jobs.host.preparation import find_prepared

_JAVA_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """The Java that Spark would start.

    Attributes:
        path: The program, or None if there is none.
        home: What JAVA_HOME says; Spark looks nowhere else when it is set.
        says: What `java -version` prints.
        modules: What `java --list-modules` prints.
    """

    path: str | None
    home: str | None = None
    says: str = ""
    modules: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The kernel's jar: the digest it carries and the one it must carry.

    Attributes:
        jar: The file's name.
        carried: None if there is no jar of ours.
        wanted: None outside a checkout, where the jar is taken as it is.
    """

    jar: str
    carried: str | None
    wanted: str | None
    javac: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that jobs write to, or the nearest one that is there.

    Attributes:
        problem: Why nothing can be written; empty if it can.
        has_links: Whether hard links work there.
        free: Bytes on its disk; None if unknown.
        device: Tells disks apart.
    """

    role: str
    path: Path
    problem: str = ""
    has_links: bool = True
    free: int | None = None
    device: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedJars:
    """Jars that are fetched on first use, and whether they are here.

    Attributes:
        what: What they are for.
        cache: Where they are, or will be.
        missing: Bytes that have yet to be fetched; 0 where all are here.
    """

    what: str
    cache: Path
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts about this machine; None for unknown ones.

    Attributes:
        prepared: The logs whose jobs find an archive of Spark's classes.
    """

    python: tuple[int, int, int]
    pyspark: str | None
    spark_home: str | None
    own_spark: str | None
    java: Java
    kernel: Kernel
    kafka: tuple[FetchedJars, ...]
    pulsar: tuple[FetchedJars, ...]
    postgres: tuple[FetchedJars, ...]
    prepared: tuple[str, ...]
    cores: int
    memory: int | None
    memory_free: int | None
    loopback_problem: str
    folders: tuple[Folder, ...]


def read_machine(*, topics: Path | None, home: Path) -> Machine:
    """Return the facts about this machine; leaves nothing behind.

    Args:
        topics: The folder where topics lie, or will; None where they lie in no folder.
        home: Where jobs live, or will.
    """
    total, free = read_memory()
    spec = find_spec("pyspark")
    return Machine(
        python=sys.version_info[:3],
        pyspark=_find_version("pyspark"),
        spark_home=os.environ.get("SPARK_HOME") or None,
        own_spark=str(Path(spec.origin).parent) if spec and spec.origin else None,
        java=read_java(),
        kernel=_read_kernel(),
        kafka=(_look_for("client", CONNECTORS["kafka"]), _look_for("broker", broker_jars())),
        pulsar=(_look_for("client", CONNECTORS.get("pulsar", ())), _look_for_pulsar()),
        postgres=(_look_for("driver", CONNECTORS["postgres"]), _look_for_postgres()),
        prepared=tuple(find_prepared()),
        cores=_count_cores(),
        memory=total,
        memory_free=free,
        loopback_problem=_find_loopback_problem(),
        folders=(
            *(() if topics is None else (read_folder("topics", topics),)),
            read_folder("jobs", home),
        ),
    )


def read_java() -> Java:
    """Return the Java that Spark would start: that of JAVA_HOME, else the one on the path."""
    home = os.environ.get("JAVA_HOME") or None
    path = find_java()
    if path is None:
        return Java(path=None, home=home)
    return Java(
        path=path,
        home=home,
        says=_run([path, "-version"]),
        modules=_run([path, "--list-modules"]),
    )


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_JAVA_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr + done.stdout


def _read_kernel() -> Kernel:
    sources = jar.find_sources()
    try:
        wanted = None if sources is None else jar.digest(sources)
    except PackageNotFoundError:
        # The digest names Spark's version; without Spark no jar fits.
        wanted = "a Spark that is not installed"
    return Kernel(
        jar=jar.JAR.name,
        carried=jar.read_digest(jar.JAR),
        wanted=wanted,
        javac=jar.find_javac(),
    )


def _look_for(what: str, artifacts: tuple[Artifact, ...]) -> FetchedJars:
    missing = sum(artifact.size for artifact in find_missing(artifacts))
    return FetchedJars(what=what, cache=jars_folder(), missing=missing)


def _look_for_pulsar() -> FetchedJars:
    # It comes in one piece, and lies unpacked in a folder of its own.
    return FetchedJars(what="broker", cache=distribution_folder(), missing=count_missing())


def _look_for_postgres() -> FetchedJars:
    return FetchedJars(
        what="server",
        cache=postgres.distribution_folder(),
        missing=postgres.count_missing(),
    )


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _count_cores() -> int:
    # A process may be bound to fewer cores than the machine has; macOS cannot tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_memory(
    proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")
) -> tuple[int | None, int | None]:
    """Return the bytes of memory in all and free, within the limits of a container."""
    total, free = _read_meminfo(proc)
    limit, used = _read_number(cgroup / "memory.max"), _read_number(cgroup / "memory.current")
    if limit is not None and (total is None or limit < total):
        total = limit
        if used is not None:
            left = max(0, limit - used)
            free = left if free is None else min(free, left)
    return total, free


def _read_meminfo(proc: Path) -> tuple[int | None, int | None]:
    try:
        text = (proc / "meminfo").read_text()
    except OSError:
        return _physical_memory(), None
    facts = {name: int(size) * 1024 for name, size in re.findall(r"(\w+): +([0-9]+) kB", text)}
    return facts.get("MemTotal"), facts.get("MemAvailable")


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _read_number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _find_loopback_problem() -> str:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        return str(error)
    return ""


def read_folder(role: str, path: Path) -> Folder:
    """Return whether a folder can be written, or its nearest parent while it is not there."""
    there = path.absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free, device = shutil.disk_usage(there).free, there.stat().st_dev
        with tempfile.TemporaryDirectory(prefix=".headgate-doctor-", dir=there) as trial:
            has_links = _has_links(Path(trial))
    except OSError as error:
        problem = error.strerror or str(error)
        return Folder(role=role, path=path, problem=problem)
    return Folder(role=role, path=path, has_links=has_links, free=free, device=device)


def _has_links(folder: Path) -> bool:
    (folder / "one").touch()
    try:
        os.link(folder / "one", folder / "two")
    except OSError:
        return False
    return True
