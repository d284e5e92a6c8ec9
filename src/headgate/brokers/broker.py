"""What a local broker is, whatever its kind: how it is asked for, and what is known of it."""

from __future__ import annotations

import enum
import itertools
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

_PORTS = range(20_000, 32_000)
DEFAULT_MEMORY = 512 * 1024**2


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
        memory: Bytes of its heap.
        secure: Whether clients must use TLS and a password; decided by a folder's first start.
        settings: The broker's own, over those it has by default.
    """

    data: Path
    port: int | None = None
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
    data: Path
    log: Path
    address: str | None = None
    url: str | None = None
    pid: int | None = None
    since: datetime | None = None
    client: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "kind": self.kind,
            "state": self.state.value,
            "address": self.address,
            "url": self.url,
            "pid": self.pid,
            "since": None if self.since is None else self.since.isoformat(),
            "data": str(self.data),
            "log": str(self.log),
            "client": None if self.client is None else str(self.client),
        }


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
