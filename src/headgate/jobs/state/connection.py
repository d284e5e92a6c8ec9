"""Where the reader of state is reached: a socket in a folder of the home that is its user's alone.

HOME/state-reader/
  lock            held by the reader as long as it lives
  socket          where it answers, one question a connection
  reader.out      what it says
  logs/spark.log  what Spark says
  work/           folders that Spark reads

A connection begins with a line of the reader's: who it is. A line with a question follows, then a
line with the answer; all of them are JSON.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from typing import IO, Any

from headgate.errors import Domain, HeadgateError
from headgate.jobs.processes.messages import receive as receive_message

PROTOCOL = 1
# A path that the system takes for a socket is no longer than this, on every system.
_LONGEST_PATH = 100
LONGEST_ANSWER = 16 * 1024 * 1024
_LONGEST_LINE = 2 * LONGEST_ANSWER


@dataclass(frozen=True, slots=True)
class ReaderFolder:
    """The folder of a home's reader of state."""

    root: Path

    @property
    def path(self) -> Path:
        """The folder."""
        return self.root.absolute() / "state-reader"

    @property
    def lock(self) -> Path:
        """Held by the reader."""
        return self.path / "lock"

    @property
    def socket_file(self) -> Path:
        """Where the reader answers."""
        return self.path / "socket"

    @property
    def output(self) -> Path:
        """What the reader and its JVM say."""
        return self.path / "reader.out"

    @property
    def log(self) -> Path:
        """What Spark says."""
        return self.path / "logs" / "spark.log"

    @property
    def work(self) -> Path:
        """Folders that Spark reads."""
        return self.path / "work"

    def make(self) -> None:
        """Make the folder; nobody but its user gets in."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)

    def listen(self) -> socket.socket:
        """Return a socket that takes connections; one that a dead reader left is replaced."""
        self.socket_file.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old = os.umask(0o177)
        try:
            with _address(self.path) as address:
                listening.bind(address)
        finally:
            os.umask(old)
        listening.listen(64)
        return listening

    def find_connection(self, timeout: float) -> socket.socket | None:
        """Return a connection to the reader, or None if nobody answers."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            with _address(self.path) as address:
                connection.connect(address)
        except OSError:
            connection.close()
            return None
        return connection


def introduction() -> dict[str, Any]:
    """Return who a reader is: one of another release, or from elsewhere, is to be replaced."""
    # The door of the package is loaded before any room of it.
    release = sys.modules["headgate"].__version__
    code = str(Path(__file__).parents[2])
    return {"protocol": PROTOCOL, "headgate": release, "code": code}


def receive(stream: IO[bytes] | RawIOBase) -> dict[str, Any] | None:
    """Return the next message of a connection, or None where the other side is gone."""
    return receive_message(stream, longest=_LONGEST_LINE)


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """Give the socket's path in a form that is short enough for the system."""
    plain = str(folder / "socket")
    if len(os.fsencode(plain)) <= _LONGEST_PATH:
        yield plain
        return
    if not Path("/proc/self/fd").is_dir():
        raise HeadgateError(
            "STATE_READER_NOT_STARTED",
            f"cannot read state: the path {plain} is too long for a socket",
            hint="use a home with a shorter path",
            domain=Domain.EXTERNAL,
        )
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/socket"
    finally:
        os.close(descriptor)
