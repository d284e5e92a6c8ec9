"""Connections: headers that do not arrive, and more connections than the system has files for."""

from __future__ import annotations

import contextlib
import json
import resource
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from served import serving
from server_bench import settings

from headgate.server.security.connections import (
    ConnectionLimits,
    Connections,
    limit_connections,
)
from headgate.server.security.limits import Limits

LONGEST = 30.0
HALF_A_HEADER = b"GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
WHOLE_HEADER = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class FakeConnection:
    """A connection without a socket."""

    def __init__(self) -> None:
        self.is_closed = False
        self.unsent = 0

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def get_write_buffer_size(self) -> int:
        return self.unsent


def connect(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=LONGEST)


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(4096):
            received += piece
    return received


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a server that waits half a second for headers."""
    limits = Limits(headers=timedelta(seconds=0.5), connections=20)
    with serving(settings(tmp_path_factory.mktemp("hasty"), limits=limits)) as address:
        yield address


def test_half_a_header_is_answered_with_408_and_the_connection_is_closed(hasty: str) -> None:
    with connect(hasty) as slow:
        slow.sendall(HALF_A_HEADER)
        head, _, body = read_to_end(slow).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    error = json.loads(body)
    assert error["code"] == "BAD_REQUEST"
    assert error["message"].endswith("its headers did not arrive within 0.5 s")


def test_a_header_that_arrives_byte_by_byte_does_not_extend_its_time(hasty: str) -> None:
    begun = time.monotonic()
    with connect(hasty) as slow, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        slow.sendall(HALF_A_HEADER)
        while time.monotonic() - begun < LONGEST:
            slow.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() - begun < LONGEST / 2


def test_a_connection_that_sends_nothing_is_closed_without_an_answer(hasty: str) -> None:
    with connect(hasty) as silent:
        assert read_to_end(silent) == b""


def test_the_second_request_of_a_connection_has_the_same_limit(hasty: str) -> None:
    with connect(hasty) as slow:
        slow.sendall(WHOLE_HEADER)
        first = slow.recv(4096)
        assert first.startswith(b"HTTP/1.1 200 ")
        # Between requests, the time for headers does not run.
        time.sleep(1)
        slow.sendall(WHOLE_HEADER + HALF_A_HEADER)
        assert b"HTTP/1.1 200 " in slow.recv(4096)
        slow.sendall(b"x")
        assert b"HTTP/1.1 408 " in read_to_end(slow)


def test_half_open_connections_of_one_address_do_not_lock_it_out(hasty: str) -> None:
    with contextlib.ExitStack() as opened:
        connections = [opened.enter_context(connect(hasty)) for _ in range(60)]
        for connection in connections:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(HALF_A_HEADER)
        assert httpx.get(f"{hasty}/healthz", timeout=LONGEST).status_code == 200


def test_300_half_open_connections_lock_nobody_out_of_a_server_with_256_files(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "headgate", "serve", "--port", "0", "--json"]
    with (
        subprocess.Popen(
            ["sh", "-c", f"ulimit -n 256 && exec {shlex.join(command)}"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        ) as server,
        contextlib.ExitStack() as opened,
    ):
        opened.callback(server.kill)
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        for _ in range(300):
            connection = opened.enter_context(connect(address))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(HALF_A_HEADER)
        for path in ("/healthz", "/v1/jobs", "/"):
            assert httpx.get(f"{address}{path}", timeout=5).status_code == 200
        files = len([*Path(f"/proc/{server.pid}/fd").iterdir()])
        assert files < 256 - 50, "there is no room for the server's own files"


def test_a_new_connection_replaces_the_one_that_waits_longest() -> None:
    connections = Connections(ConnectionLimits(total=3, per_client=2))
    first, second, third, fourth = (FakeConnection() for _ in range(4))
    assert connections.add(first, "a")
    assert connections.add(second, "a")
    connections.serve(first)
    connections.wait(first)
    assert connections.add(third, "a")
    assert (first.is_closed, second.is_closed) == (False, True)
    assert connections.add(fourth, "b")
    assert connections.add(FakeConnection(), "c")
    assert (first.is_closed, third.is_closed, fourth.is_closed) == (True, False, False)


def test_a_new_connection_is_refused_if_none_waits() -> None:
    connections = Connections(ConnectionLimits(total=3, per_client=2))
    answered, unsent, other, refused = (FakeConnection() for _ in range(4))
    unsent.unsent = 1
    for connection in (answered, unsent):
        assert connections.add(connection, "a")
    connections.serve(answered)
    assert not connections.add(refused, "a")
    assert connections.add(other, "b")
    assert not any(each.is_closed for each in (answered, unsent, other, refused))


def test_a_closed_websocket_gives_its_place_back() -> None:
    connections = Connections(ConnectionLimits(total=2, per_client=1))
    websocket = FakeConnection()
    assert connections.add(websocket, "a")
    connections.serve(websocket)
    assert not connections.add(FakeConnection(), "a")
    websocket.close()
    assert connections.add(FakeConnection(), "a")


@pytest.mark.parametrize(
    ("files", "total", "per_client"),
    [(1024, 640, 256), (256, 128, 64), (65_536, 2_048, 256), (resource.RLIM_INFINITY, 2_048, 256)],
)
def test_connections_leave_room_for_the_files_of_the_server(
    monkeypatch: pytest.MonkeyPatch, files: int, total: int, per_client: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (files, files))
    assert limit_connections(256) == ConnectionLimits(total, per_client)
