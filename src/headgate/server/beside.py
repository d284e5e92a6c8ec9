"""A server beside one job: a process of its own that shows the job, and ends with it.

It ends with the process that started it, also when that one is killed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.errors import Domain, HeadgateError
from headgate.jobs.processes.child import spawn
from headgate.jobs.processes.parent import Parent
from headgate.server.security.tokens import TOKEN_VARIABLE, read_tokens
from headgate.server.serving import listen, serve
from headgate.server.settings import DEFAULT_HOST, DEFAULT_PORT, ServerSettings

_LONGEST_END = 10.0


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
        process = spawn("headgate.server.beside", inherits=(listener.fileno(),))
    with process:
        process.send(settings)
        greeting = process.receive()
        if greeting is None:
            raise HeadgateError(
                "SERVER_NOT_STARTED",
                f"cannot show the job in a browser: its server {process.get_death().explain()}",
                hint="see its output above, or omit --ui",
                domain=Domain.INTERNAL,
            )
        try:
            yield str(greeting["address"])
        finally:
            process.end_input()
            process.wait(_LONGEST_END)


def _listen(port: int | None) -> socket.socket:
    if port is not None:
        return listen(DEFAULT_HOST, port)
    try:
        return listen(DEFAULT_HOST, DEFAULT_PORT)
    except HeadgateError:
        return listen(DEFAULT_HOST, 0)


def main() -> None:
    """Serve what the parent says until it is gone."""
    parent = Parent()
    order = parent.receive()
    tokens = read_tokens(None)
    os.environ.pop(TOKEN_VARIABLE, None)
    settings = ServerSettings(
        home=Path(order["home"]),
        on=order["on"],
        only=order["only"],
        tokens=tokens,
        keeps_up=False,
    )

    def greet(chosen: ServerSettings) -> None:
        parent.answer({"address": chosen.address})

    serve(
        settings,
        on_listening=greet,
        listener=socket.socket(fileno=order["fd"]),
        until=lambda end: parent.listen(lambda _message: None, end),
    )


if __name__ == "__main__":
    main()
