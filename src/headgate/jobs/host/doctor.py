"""The doctor: is this machine fit to run jobs, and if not, what to do."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate._units import format_size
from headgate.connectors.contract.connector import Log
from headgate.connectors.logs import parse_log
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    # Loaded when the doctor is asked for: it brings much that no other verb needs.
    from headgate.jobs.host.facts import FetchedJars, Folder, Java, Kernel, Machine

SPARK_VERSION = "4.3.0"
OLDEST_JAVA = 17
OLDEST_PYTHON = (3, 11)

_MIB = 1024**2
_GIB = 1024**3
# The driver's heap and what state takes beside it by default, and some room for Python.
_ROOMY_MEMORY = 3 * _GIB
_LEAST_MEMORY = 1 * _GIB
_ROOMY_DISK = 5 * _GIB
_LEAST_DISK = 256 * _MIB
_VECTOR_MODULE = "jdk.incubator.vector"
_INSTALL_JAVA = "install a JDK 17 or newer (apt install openjdk-17-jdk), or set JAVA_HOME to one"


class Status(enum.StrEnum):
    """How a check came out; only a failure keeps jobs from running."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was looked at, how it is, what was found, and what to do."""

    name: str
    status: Status
    found: str
    advice: str = ""


def diagnose(on: str, home: Path) -> list[Finding]:
    """Return every check of this machine, whatever it finds.

    Args:
        on: The log of the topics, as `--on` names it.
        home: Where jobs live.
    """
    from headgate.jobs.host.facts import read_machine

    log = parse_log(on)
    findings = judge(read_machine(topics=log.folder, home=home))
    return findings if log.folder is not None else [*findings, _try_log(log, on)]


def _try_log(log: Log, on: str) -> Finding:
    """Return whether a broker answers that the topics are on."""
    try:
        count = len(log.open_topics().list_topics(count=False))
    except HeadgateError as error:
        return _fail("topics", error.message, error.hint)
    return _ok("topics", f"{on} answers: {count} topics")


def judge(machine: Machine) -> list[Finding]:
    """Return the findings for the facts, in the order a user would fix them."""
    return [
        _judge_python(machine.python),
        _judge_java(machine.java),
        _judge_spark(machine),
        _judge_kernel(machine.kernel),
        _judge_fetched("kafka", machine.kafka),
        _judge_fetched("pulsar", machine.pulsar),
        _judge_fetched("postgres", machine.postgres),
        _judge_prepared(machine.prepared),
        _judge_cores(machine.cores),
        _judge_memory(machine.memory, machine.memory_free),
        _judge_loopback(machine.loopback_problem),
        *(_judge_folder(folder) for folder in machine.folders),
        *_judge_disks(machine.folders),
    ]


def _ok(name: str, found: str, advice: str = "") -> Finding:
    return Finding(name, Status.OK, found, advice)


def _warn(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Status.WARN, found, advice)


def _fail(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Status.FAIL, found, advice)


def parse_java_version(text: str) -> int | None:
    """Return the feature release in what `java -version` prints: 17 of "17.0.15", 8 of "1.8"."""
    match = re.search(r'version "(?:1\.)?([0-9]+)', text)
    return int(match[1]) if match else None


def _judge_python(version: tuple[int, int, int]) -> Finding:
    text = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return _fail("python", text, f"use Python {wanted} or newer")
    return _ok("python", text)


def _judge_java(java: Java) -> Finding:
    if java.path is None and java.home is not None:
        return _fail(
            "java",
            f"JAVA_HOME is {java.home}, and there is no bin/java in it",
            "unset JAVA_HOME, or set it to a JDK 17 or newer",
        )
    if java.path is None:
        return _fail("java", "there is no java on the path", _INSTALL_JAVA)
    release = parse_java_version(java.says)
    if release is None:
        said = java.says.strip().partition("\n")[0] or "nothing"
        return _fail("java", f"{java.path} does not tell its version: {said}", _INSTALL_JAVA)
    java_text = f"{release} at {java.path}"
    if release < OLDEST_JAVA:
        return _fail("java", f"{java_text}; Spark needs {OLDEST_JAVA} or newer", _INSTALL_JAVA)
    if _VECTOR_MODULE not in java.modules:
        return _fail(
            "java",
            f"{java_text}, without the module {_VECTOR_MODULE} that Spark asks for",
            _INSTALL_JAVA,
        )
    return _ok("java", java_text)


def _judge_spark(machine: Machine) -> Finding:
    install = f"pip install pyspark=={SPARK_VERSION}"
    if machine.pyspark is None:
        return _fail("spark", "the package pyspark is not installed", install)
    if machine.pyspark != SPARK_VERSION:
        return _fail(
            "spark",
            f"pyspark {machine.pyspark}; this release of headgate is made for {SPARK_VERSION}",
            install,
        )
    if machine.spark_home is not None and machine.spark_home != machine.own_spark:
        return _warn(
            "spark",
            f"pyspark {machine.pyspark}, but SPARK_HOME is {machine.spark_home}, which is taken "
            "in its place",
            "unset SPARK_HOME",
        )
    return _ok("spark", f"pyspark {machine.pyspark}")


def _judge_kernel(kernel: Kernel) -> Finding:
    if kernel.wanted is None:
        if kernel.carried is None:
            return _fail(
                "kernel",
                f"the package has no {kernel.jar}",
                "pip install --force-reinstall headgate",
            )
        return _ok("kernel", f"{kernel.jar} came with the package")
    if kernel.carried == kernel.wanted:
        return _ok("kernel", f"{kernel.jar} fits its sources")
    problem = (
        "the jar is not built" if kernel.carried is None else "the jar is older than its source"
    )
    if kernel.javac is None:
        return _fail(
            "kernel",
            f"{problem}, and there is no javac to build it",
            "install a JDK 17 or newer, not only a JRE (apt install openjdk-17-jdk)",
        )
    return _warn("kernel", f"{problem}; the next run builds it with {kernel.javac}", "make kernel")


def _judge_fetched(name: str, jars: tuple[FetchedJars, ...]) -> Finding:
    # Jars are fetched on first use, so missing ones are not a problem.
    here: dict[Path, list[str]] = {}
    for jar in jars:
        if not jar.missing:
            here.setdefault(jar.cache, []).append(jar.what)
    parts = [f"{' and '.join(names)} in {cache}" for cache, names in here.items()]
    to_fetch = [f"{jar.what} {format_size(jar.missing)}" for jar in jars if jar.missing]
    if to_fetch:
        parts.append(f"fetched on first use: {', '.join(to_fetch)}")
    return _ok(name, "; ".join(parts))


def _judge_prepared(logs: tuple[str, ...]) -> Finding:
    # Jobs start without an archive too.
    if not logs:
        return _ok(
            "classes",
            "no archive of Spark's classes: every start reads them from jars",
            "headgate prepare",
        )
    return _ok("classes", f"archived for jobs on {', '.join(logs)}")


def _judge_cores(cores: int) -> Finding:
    if cores < 2:
        return _warn(
            "cores",
            f"{cores}: jobs run, but slowly, since Spark and Python share it",
            "give the machine or the container 2 cores or more",
        )
    return _ok("cores", str(cores))


def _judge_memory(total: int | None, free: int | None) -> Finding:
    if total is None:
        return _ok("memory", "this system does not tell")
    memory = f"{format_size(total)} in all"
    if free is not None:
        memory += f", {format_size(free)} free"
    usable = total if free is None else free
    if usable < _LEAST_MEMORY:
        return _fail(
            "memory",
            f"{memory}; Spark does not start in less than {format_size(_LEAST_MEMORY)}",
            "end other programs, or give the machine or the container more memory",
        )
    if usable < _ROOMY_MEMORY:
        return _warn(
            "memory",
            f"{memory}; a job takes up to {format_size(_ROOMY_MEMORY)} by default",
            "headgate run FLOW --profile small",
        )
    return _ok("memory", memory)


def _judge_loopback(problem: str) -> Finding:
    if problem:
        return _fail(
            "loopback",
            f"no connection over 127.0.0.1: {problem}",
            "allow programs to listen on 127.0.0.1: Spark and Python talk over it",
        )
    return _ok("loopback", "ports of 127.0.0.1 can be bound and reached")


def _judge_folder(folder: Folder) -> Finding:
    if folder.problem:
        option = "--on files:DIR" if folder.role == "topics" else "--home DIR"
        return _fail(
            folder.role,
            f"{folder.path} cannot be written: {folder.problem}",
            f"get the right to write there, or choose another folder with {option}",
        )
    if not folder.has_links:
        return _warn(
            folder.role,
            f"{folder.path} has no hard links: files are published in a slower way",
            "use a file system with hard links (ext4, xfs, btrfs, apfs)",
        )
    return _ok(folder.role, f"{folder.path} can be written")


def _judge_disks(folders: tuple[Folder, ...]) -> Iterator[Finding]:
    # Folders are mostly on one disk, which is reported once.
    by_device = {folder.device: folder for folder in reversed(folders)}
    for folder in reversed(by_device.values()):
        if folder.free is not None:
            yield _judge_disk(folder.path, folder.free)


def _judge_disk(path: Path, free: int) -> Finding:
    space = f"{format_size(free)} free for {path}"
    advice = "free some space; df -h shows how much is left"
    if free < _LEAST_DISK:
        needed = format_size(_LEAST_DISK)
        return _fail("disk", f"{space}; jobs need {needed} to start", advice)
    if free < _ROOMY_DISK:
        return _warn("disk", f"{space}; checkpoints and topics grow", advice)
    return _ok("disk", space)
