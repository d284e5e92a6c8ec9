"""A real server in this process, on a port of its own, for tests of its clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from eventually import eventually

from headgate.server.app import create_app
from headgate.server.http_protocol import limited_protocol
from headgate.server.settings import ServerSettings


@contextmanager
def serving(settings: ServerSettings) -> Iterator[str]:
    """Serve on a free port of this machine, and yield the server's URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = create_app(settings)
        protocol = limited_protocol(settings.limits)
        server = uvicorn.Server(
            uvicorn.Config(app, http=protocol, log_level="warning", lifespan="on")
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        eventually(lambda: server.started or not thread.is_alive(), every=0.01)
        assert server.started, "the server ended at once"
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
