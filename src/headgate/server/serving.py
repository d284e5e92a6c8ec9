"""The process of a server: it listens, and ends in order on a signal."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

from headgate.errors import Domain, HeadgateError
from headgate.server.security.connections import BACKLOG
from headgate.server.security.limits import Limits
from headgate.server.settings import ServerSettings, check_settings

_LARGEST_MESSAGE = 1 << 20
_GRACE_S = 3


def serve(
    settings: ServerSettings,
    *,
    on_listening: Callable[[ServerSettings], None],
    listener: socket.socket | None = None,
    until: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; jobs go on.

    Args:
        on_listening: Called once the server listens, with the port that it got.
        listener: A socket that is bound already.
        until: Is given a function that ends the server, which it may call from any thread.

    Raises:
        HeadgateError: TOKEN_NEEDED, FLOWS_NOT_FOUND, SERVER_RUNNING, PORT_TAKEN or BAD_ADDRESS.
    """
    check_settings(settings)
    with contextlib.ExitStack() as stack:
        own = listener or stack.enter_context(listen(settings.host, settings.port))
        chosen = replace(settings, port=own.getsockname()[1])
        if chosen.keeps_up:
            stack.enter_context(hold_home(chosen))
        # Loading the app takes a second; refusals come before it.
        from headgate.server.app import create_app

        app = create_app(chosen)
        server = _make_server(app, chosen.limits)
        if until is not None:
            until(server.end)
        on_listening(chosen)
        server.run(sockets=[own])


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; port 0 means any free one.

    Raises:
        HeadgateError: PORT_TAKEN or BAD_ADDRESS.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError, UnicodeError) as error:
        raise _bad_address(host, port, str(getattr(error, "strerror", error))) from error
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise HeadgateError(
                "PORT_TAKEN",
                f"cannot serve on {host}:{port}: another process listens there",
                hint=f"--port {port + 1 if port < 65535 else 0}",
                domain=Domain.EXTERNAL,
            ) from error
        raise _bad_address(host, port, os.strerror(error.errno or 0)) from error
    return bound


@contextlib.contextmanager
def hold_home(settings: ServerSettings) -> Iterator[None]:
    """Hold a home for this server; a crash releases it.

    Raises:
        HeadgateError: SERVER_RUNNING with the address of the one that holds it.
    """
    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (settings.folder / "lock").open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            other = _read_holder(lock.read())
            raise HeadgateError(
                "SERVER_RUNNING",
                f"cannot serve {settings.home}: another server already does: {other}",
                hint="use that one, or use another home: --home DIR",
            ) from error
        lock.truncate(0)
        lock.write(json.dumps({"format": 1, "address": settings.address, "pid": os.getpid()}))
        lock.flush()
        yield


def _read_holder(text: str) -> str:
    try:
        holder = json.loads(text)
        return f"at {holder['address']} (process {holder['pid']})"
    except (ValueError, KeyError, TypeError):
        return "which is just starting"


def _bad_address(host: str, port: int, why: str) -> HeadgateError:
    return HeadgateError(
        "BAD_ADDRESS",
        f"cannot serve on {host}:{port}: {why}",
        hint="--host 127.0.0.1 --port 8270",
    )


def _make_server(app: Any, limits: Limits) -> Any:
    import uvicorn

    from headgate.server.http_protocol import limited_protocol

    class Server(uvicorn.Server):
        """Ends in order on a signal or on `end`."""

        def end(self) -> None:
            self.should_exit = True

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn's own handler raises the signal again afterwards, which ends the process.
            def ended(_number: int, _frame: FrameType | None) -> None:
                self.force_exit = self.should_exit
                self.should_exit = True

            before = {
                number: signal.signal(number, ended) for number in (signal.SIGINT, signal.SIGTERM)
            }
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    return Server(
        uvicorn.Config(
            app,
            http=limited_protocol(limits),
            # More would be accepted at once, before any of them is counted.
            backlog=BACKLOG,
            log_level="warning",
            access_log=False,
            server_header=False,
            # A client on this machine could claim another address.
            proxy_headers=False,
            ws_max_size=_LARGEST_MESSAGE,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )
