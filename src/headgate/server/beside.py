"""A server beside one job: a process of its own that shows the job, and ends with it.

It is told what to serve on its standard input, and ends when that is closed: also when whoever
started it was killed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.errors import Domain, HeadgateError
from headgate.server.security.tokens import TOKEN_VARIABLE, read_tokens
from headgate.server.serving import listen, serve
from headgate.server.settings import DEFAULT_HOST, DEFAULT_PORT, ServerSettings


@contextmanager
def serve_beside(home: Path, job: str, *, on: str, port: int | None) -> Iterator[str]:
    """Serve one job while the block runs, and give the address.

    Args:
        on: The log that the job runs on.
        port: That one, or refuse; None for the usual one, or any if it is taken.

    Raises:
        HeadgateError: PORT_TAKEN, or what is wrong with HEADGATE_TOKEN.
    """
    read_tokens(None)
    with _listen(port) as listener:
        settings = {"home": str(home.absolute()), "only": job, "on": on, "fd": listener.fileno()}
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.server.beside"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(listener.fileno(),),
            # Ctrl-C is for the job, which ends in order and this one after it.
            start_new_session=True,
        )
    try:
        yield _greet(process, settings)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _greet(process: subprocess.Popen[bytes], settings: dict[str, Any]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(settings).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        # It ended at once; what it answers tells why.
        pass
    line = process.stdout.readline()
    try:
        return str(json.loads(line)["address"])
    except (ValueError, KeyError) as error:
        process.kill()
        raise HeadgateError(
            "SERVER_NOT_STARTED",
            "cannot show the job in a browser: its server exited at once",
            hint="see its output above, or omit --ui",
            domain=Domain.INTERNAL,
        ) from error


def _listen(port: int | None) -> socket.socket:
    if port is not None:
        return listen(DEFAULT_HOST, port)
    try:
        return listen(DEFAULT_HOST, DEFAULT_PORT)
    except HeadgateError:
        return listen(DEFAULT_HOST, 0)


def main() -> None:
    """Serve what standard input says until it is closed."""
    order = json.loads(sys.stdin.readline())
    tokens = read_tokens(None)
    os.environ.pop(TOKEN_VARIABLE, None)
    settings = ServerSettings(
        home=Path(order["home"]),
        on=order["on"],
        only=order["only"],
        tokens=tokens,
        keeps_up=False,
    )

    def tell(chosen: ServerSettings) -> None:
        sys.stdout.write(json.dumps({"address": chosen.address}) + "\n")
        sys.stdout.flush()

    def end_with_input(end: Callable[[], None]) -> None:
        def wait() -> None:
            sys.stdin.read()
            end()

        threading.Thread(target=wait, name="standard-input", daemon=True).start()

    serve(settings, told=tell, listener=socket.socket(fileno=order["fd"]), until=end_with_input)


if __name__ == "__main__":
    main()
