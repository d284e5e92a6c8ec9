"""The connection to the reader of state: a socket in a folder that only its user can access.

HOME/state-reader/
  lock            held by the reader
  socket          where it answers, one question for each connection
  reader.out      the output of the reader and its JVM
  logs/spark.log  Spark's log
  work/           folders that Spark reads

The reader begins a connection with a line that introduces itself. A line with the question follows,
then a line with the answer; all of them are JSON.
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
# The longest path of a socket that every system accepts.
_LONGEST_PATH = 100
LONGEST_ANSWER = 16 * 1024 * 1024
_LONGEST_LINE = 2 * LONGEST_ANSWER


@dataclass(frozen=True, slots=True)
class ReaderFolder:
    """The folder of a home's reader of state."""

    root: Path

    @property
    def path(self) -> Path:
        return self.root.absolute() / "state-reader"

    @property
    def socket_file(self) -> Path:
        return self.path / "socket"

    @property
    def output(self) -> Path:
        return self.path / "reader.out"

    def make(self) -> None:
        """Create the folder, which only its user can access."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)

    def listen(self) -> socket.socket:
        """Return a socket that accepts connections; that of a dead reader is replaced."""
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
        """Return a connection to the reader, or None if no reader answers."""
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
    """Return the identity of a reader: one of another release or installation is replaced."""
    release = sys.modules["headgate"].__version__
    code = str(Path(__file__).parents[2])
    return {"protocol": PROTOCOL, "headgate": release, "code": code}


def receive(stream: IO[bytes] | RawIOBase) -> dict[str, Any] | None:
    """Return the next message of a connection, or None if the other side has closed it."""
    return receive_message(stream, longest=_LONGEST_LINE)


@contextmanager
def _address(folder: Path) -> Iterator[str]:
    """Yield a path of the socket that is short enough for the system."""
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
