"""Local brokers of any kind: the options of a start, and the status of a broker."""

from __future__ import annotations

import enum
import itertools
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
    """The status of a broker."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """The options of a start.

    Attributes:
        data: Its folder with records, settings and log. It may exist from an earlier start.
        port: None for its last port, or the default of its kind; 0 for any free port.
        admin_port: The same for its admin port, if it has one of its own.
        memory: The size of its heap in bytes.
        secure: True if clients must use TLS and authenticate; the first start in a folder decides.
        settings: Settings of the broker that override the defaults.
    """

    data: Path
    port: int | None = None
    admin_port: int | None = None
    memory: int = DEFAULT_MEMORY
    secure: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """The current status of a broker.

    Attributes:
        log: Its log; exists after the first start.
        url: The value for `--on`; None if it was never started.
        pid: Its process; None if it is stopped.
        since: When it was started; None if it is stopped.
        client: A file of settings for clients; None if they need none.
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
    """Return True if a server could listen on a port."""
    try:
        with socket.create_server((host, port)):
            return True
    except OSError:
        return False


def find_ports(host: str, count: int) -> list[int]:
    """Return distinct free ports.

    They are below the ports that systems give to outgoing connections. Otherwise a client of a
    restarting broker could be given the broker's own port.
    """
    tries = random.sample(_PORTS, len(_PORTS))
    return list(itertools.islice((port for port in tries if is_free(host, port)), count))


def properties(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a Java properties file."""
    return "".join(f"{name}={_escape(value)}\n" for name, value in settings.items())


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
