"""What a local broker is, whatever its kind: how it is asked for, and what is known of it."""

from __future__ import annotations

import enum
import itertools
import os
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate._codec import Moment

HOST = "127.0.0.1"
DEFAULT_MEMORY = 512 * 1024**2
LOG = "log/broker.log"
LOG4J = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = log/broker.log
appender.file.filePattern = log/broker.%i.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %p %m (%c{1})%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 5
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""
_PORTS = range(20_000, 32_000)


class BrokerState(enum.StrEnum):
    """How far a broker is."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """How a broker is asked for.

    Attributes:
        data: Its folder: records, settings, log. It may be there from an earlier start.
        port: None for the one it had last, or its kind's usual one; 0 for any that is free.
        admin_port: The same for the port of its administration, where it has one of its own.
        memory: Bytes of its heap.
        secure: Whether clients must use TLS and prove who they are; decided by a folder's first
            start.
        settings: The broker's own, over those it has by default.
    """

    data: Path
    port: int | None = None
    admin_port: int | None = None
    memory: int = DEFAULT_MEMORY
    secure: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker as it is now.

    Attributes:
        log: What it writes; there once it was started.
        url: What `--on` takes; None where it was never started.
        pid: Its process; None where it is stopped.
        since: When it was started; None where it is stopped.
        client: A file of settings that clients need; None where they need none.
    """

    kind: str
    state: BrokerState
    address: str | None = None
    url: str | None = None
    pid: int | None = None
    since: Moment | None = None
    data: Path
    log: Path
    client: Path | None = None


def is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen on a port."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def find_ports(host: str, count: int) -> list[int]:
    """Return ports that nobody listens on, all different.

    They lie below those that systems give to outgoing connections. Otherwise a client that tries
    to reach a broker while it restarts could be given the broker's own port.
    """
    tries = random.sample(_PORTS, len(_PORTS))
    return list(itertools.islice((port for port in tries if is_free(host, port)), count))


def properties(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a Java properties file."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in settings.items())


def write_private(file: Path, text: str) -> None:
    """Replace a file that nobody else may read: a secured broker's settings hold passwords."""
    making = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(making, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as sink:
        sink.write(text)
    making.replace(file)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
