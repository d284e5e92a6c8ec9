"""Hosts on this machine that share no network and no folder: namespaces of Linux.

Each host has an address on a bridge, and only what tests run has a way to 127.0.0.1 of this one:
a broker and a store, each through a relay on the same port of the host's own 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_NETWORK = "10.213.7"
_CLONE_NEWNET = 0x40000000
_CHUNK = 1 << 16
# Hides folders by mounting an empty one on them, and becomes the process that it is to run.
_HIDE = """\
while [ "$1" != -- ]; do mount --bind "$0" "$1" || exit 97; shift; done
shift
exec "$@"
"""


def find_obstacle() -> str | None:
    """Return why there can be no such hosts here, or None."""
    if sys.platform != "linux":
        return "network namespaces are Linux's"
    missing = [name for name in ("ip", "nsenter", "unshare", "mount") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else f"namespaces are not permitted: {tried.stderr}"


@dataclass(slots=True)
class Hosts:
    """Hosts with the names that are asked for, until they are closed.

    Attributes:
        folder: Has an empty folder for the hosts to see in place of others.
    """

    folder: Path
    addresses: dict[str, str] = field(default_factory=dict)
    _listeners: list[socket.socket] = field(default_factory=list)

    def open(self, names: Sequence[str]) -> None:
        """Make the hosts and the bridge between them, which is a host, too."""
        (self.folder / "empty").mkdir(parents=True)
        _ip("netns", "add", self._namespace("bridge"))
        self._run("bridge", "ip", "link", "add", "br0", "type", "bridge")
        self._run("bridge", "ip", "link", "set", "br0", "up")
        for number, name in enumerate(names, 2):
            self.addresses[name] = f"{_NETWORK}.{number}"
            _ip("netns", "add", self._namespace(name))
            ends = ("eth0", "netns", self._namespace(name), "type", "veth", "peer", "name")
            self._run("bridge", "ip", "link", "add", *ends, f"port{number}")
            self._run("bridge", "ip", "link", "set", f"port{number}", "master", "br0", "up")
            self._run(name, "ip", "address", "add", f"{self.addresses[name]}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                self._run(name, "ip", "link", "set", device, "up")

    def close(self) -> None:
        """Remove the hosts; their processes must have ended."""
        for listener in self._listeners:
            listener.close()
        for name in ("bridge", *self.addresses):
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", self._namespace(name))

    def command(self, name: str, words: Sequence[str], *, hidden: Sequence[Path]) -> list[str]:
        """Return the command that runs another one on a host, without the folders it lacks."""
        network = f"--net=/run/netns/{self._namespace(name)}"
        alone = ["unshare", "--mount", "--propagation", "private"]
        hide = ["sh", "-c", _HIDE, str(self.folder / "empty"), *map(str, hidden), "--"]
        return ["nsenter", network, *alone, *hide, *words]

    def relay(self, port: int) -> None:
        """Let every host reach a port of 127.0.0.1 of this machine as if it were its own."""
        for name in self.addresses:
            listener = self._inside(name, lambda: socket.create_server(("127.0.0.1", port)))
            self._listeners.append(listener)
            threading.Thread(target=_accept, args=(listener, port), daemon=True).start()

    def cut(self, name: str) -> None:
        """Drop whatever goes to a host or comes from it; no end of a connection is told."""
        # With fixed hardware addresses nobody learns that the host is gone.
        hardware = {other: self._hardware_address(other) for other in self.addresses}
        for one in self.addresses:
            for other, address in self.addresses.items():
                if one != other:
                    fixed = ("lladdr", hardware[other], "dev", "eth0", "nud", "permanent")
                    self._run(one, "ip", "neighbor", "replace", address, *fixed)
        self._run("bridge", "ip", "link", "set", self._port(name), "nomaster")

    def join(self, name: str) -> None:
        """Connect a host again that was cut off."""
        self._run("bridge", "ip", "link", "set", self._port(name), "master", "br0")

    def _port(self, name: str) -> str:
        """Return the device by which a host is on the bridge."""
        return f"port{self.addresses[name].rpartition('.')[2]}"

    def _hardware_address(self, name: str) -> str:
        return self._inside(name, lambda: Path("/sys/class/net/eth0/address").read_text()).strip()

    def listens(self, name: str, port: int) -> bool:
        """Return True if a process listens on a port of a host."""

        def connect() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((self.addresses[name], port)) == 0

        return self._inside(name, connect)

    def _inside(self, name: str, call: Callable[[], T]) -> T:
        """Call a function on a host: a socket is of the namespace of the thread that made it."""
        results: list[T] = []

        def enter() -> None:
            with Path(f"/run/netns/{self._namespace(name)}").open("rb") as namespace:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "cannot enter a network namespace")
            results.append(call())

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return results[0]

    def _run(self, name: str, *words: str) -> None:
        _ip("netns", "exec", self._namespace(name), *words)

    def _namespace(self, name: str) -> str:
        # Runs of tests beside each other have hosts of their own.
        return f"headgate-{os.getpid()}-{name}"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _accept(listener: socket.socket, port: int) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()
            continue
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
