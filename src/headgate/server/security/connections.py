"""Connection limits: how many connections are open, of one client and of all."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Protocol

# For the server's own files, and for connections that are accepted and not yet counted.
_OWN_FILES = 256
_MOST_CONNECTIONS = 2_048
# Connections that the system may hold before the server accepts them.
BACKLOG = 128


class Connection(Protocol):
    """What is counted: a transport of asyncio."""

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or about to be."""

    def close(self) -> None:
        """Close the connection."""

    def get_write_buffer_size(self) -> int:
        """Return the bytes of answers that are not sent yet."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections may be open at once.

    Attributes:
        total: Of all clients.
        per_client: Of one address.
    """

    total: int
    per_client: int


def limit_connections(per_client: int) -> ConnectionLimits:
    """Return limits that leave room for the server's own files under the limit of the system.

    Args:
        per_client: The most connections of one address; no address gets more than half of all.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        total = _MOST_CONNECTIONS
    else:
        total = min(_MOST_CONNECTIONS, files - min(_OWN_FILES + BACKLOG, files // 2))
    return ConnectionLimits(total, min(per_client, total // 2))


class Connections:
    """The open connections of a server; for its event loop alone.

    A connection waits while the server has no complete request of it. At a limit, a new connection
    replaces the one that has waited longest; if none waits, the new one is refused.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._clients: dict[Connection, str] = {}
        # In the order in which they began to wait.
        self._waiting: dict[Connection, None] = {}

    def add(self, connection: Connection, client: str) -> bool:
        """Count a new connection, which waits; return whether there is a place for it."""
        if self._is_full(client):
            self._remove_closed()
        if self._count(client) >= self._limits.per_client:
            if not self._close_oldest(client):
                return False
        elif len(self._clients) >= self._limits.total and not self._close_oldest(None):
            return False
        self._clients[connection] = client
        self._waiting[connection] = None
        return True

    def wait(self, connection: Connection) -> None:
        """Note that a connection waits for its next request."""
        if connection in self._clients:
            self._waiting.setdefault(connection)

    def serve(self, connection: Connection) -> None:
        """Note that the server answers a request of a connection."""
        self._waiting.pop(connection, None)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        self._clients.pop(connection, None)
        self._waiting.pop(connection, None)

    def _is_full(self, client: str) -> bool:
        return (
            len(self._clients) >= self._limits.total
            or self._count(client) >= self._limits.per_client
        )

    def _count(self, client: str) -> int:
        return sum(other == client for other in self._clients.values())

    def _remove_closed(self) -> None:
        # The protocol of websockets replaces that of HTTP, and does not report their end here.
        for connection in [*self._clients]:
            if connection.is_closing():
                self.remove(connection)

    def _close_oldest(self, client: str | None) -> bool:
        """Close the connection that waits longest, of a client or of all; False if none waits."""
        for connection in self._waiting:
            is_asked = client is None or self._clients[connection] == client
            # One whose answer is not sent yet still has its reader.
            if is_asked and not connection.get_write_buffer_size():
                self.remove(connection)
                connection.close()
                return True
        return False
