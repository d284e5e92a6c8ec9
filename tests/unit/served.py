"""A real server in this process, on a port of its own, for tests of its clients."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from headgate.server.app import create_app
from headgate.server.settings import ServerSettings

_LONGEST_START_S = 20.0


@contextmanager
def serving(settings: ServerSettings) -> Iterator[str]:
    """Serve on a free port of this machine, and yield the server's URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = create_app(settings)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + _LONGEST_START_S
        while not server.started:
            assert time.monotonic() < deadline, "the server did not start"
            assert thread.is_alive(), "the server ended at once"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
