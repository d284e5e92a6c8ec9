"""An archive of Pulsar's classes, with which a start takes half as long.

To create it, a separate broker is started and stopped once for each Java and distribution. If that
fails, brokers start without it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from datetime import timedelta
from pathlib import Path

from headgate._artifacts import Progress, get_java
from headgate._clock import Clock
from headgate.brokers.broker import DEFAULT_MEMORY, HOST, find_ports
from headgate.brokers.process import Process, alone_in, start_process, stop_process
from headgate.brokers.pulsar_health import is_serving
from headgate.brokers.pulsar_process import java_command, write_settings
from headgate.brokers.pulsar_settings import Ports

_LOOK_EVERY = timedelta(milliseconds=200)
_ANSWERS_WITHIN = timedelta(seconds=2)
_SERVES_WITHIN = timedelta(seconds=60)
_ENDS_WITHIN = timedelta(seconds=60)


def get_classes(distribution: Path, *, progress: Progress, clock: Clock) -> Path | None:
    """Return the file of the classes; None if it cannot be created."""
    file = distribution / f"classes-{_java_id()}.jsa"
    if not file.exists() and os.access(distribution, os.W_OK):
        with alone_in(distribution):
            # Another process may have created it meanwhile.
            if not file.exists():
                progress("preparing for faster starts, once: some 20 s")
                _make(file, distribution, clock)
    return file if file.exists() and file.stat().st_size else None


def _java_id() -> str:
    """Return a text that identifies a Java, which reads only its own classes."""
    java = Path(get_java("start Pulsar")).resolve()
    facts = java.stat()
    return hashlib.sha256(f"{java} {facts.st_size} {facts.st_mtime_ns}".encode()).hexdigest()[:12]


def _make(file: Path, distribution: Path, clock: Clock) -> None:
    with tempfile.TemporaryDirectory(prefix=".classes-", dir=distribution) as trial:
        folder = Path(trial)
        made = folder / "classes.jsa"
        process = _start(folder, made, distribution, clock)
        _wait(process, clock)
        stop_process(process, grace=_ENDS_WITHIN, clock=clock)
        # An empty file records the failure, so that later starts do not try again.
        made.touch()
        made.rename(file)


def _start(folder: Path, made: Path, distribution: Path, clock: Clock) -> Process:
    clients, admin, bookie = find_ports(HOST, 3)
    write_settings(folder, Ports(clients, admin, bookie), settings={}, security=None)
    return start_process(
        java_command(
            distribution,
            memory=DEFAULT_MEMORY,
            bookie=bookie,
            more=[f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"],
        ),
        folder / "broker.json",
        output=folder / "log" / "broker.out",
        facts={"admin": admin},
        clock=clock,
    )


def _wait(process: Process, clock: Clock) -> None:
    admin = f"http://{HOST}:{process.facts['admin']}"
    deadline = clock.monotonic() + _SERVES_WITHIN.total_seconds()
    while process.is_alive and clock.monotonic() < deadline:
        if is_serving(admin, within=_ANSWERS_WITHIN):
            return
        clock.sleep(_LOOK_EVERY)
