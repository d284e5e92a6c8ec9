"""A server that answers with what a test has put down, and takes note of what it was asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    authorization: str | None
    body: str
    key: str | None = None


class Told:
    """What is answered, by turns, the last for ever; and what was asked.

    An answer is a status and a text; with status 0 the connection breaks off.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[tuple[int, str]] = [(200, "{}")]
        self.asked: list[Asked] = []


@contextmanager
def telling() -> Iterator[Told]:
    """Serve on a free port of this machine."""
    told = Told()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            asked = Asked(self.command, self.path, self.headers.get("Authorization"), body)
            asked = asked._replace(key=self.headers.get("Idempotency-Key"))
            told.asked.append(asked)
            status, text = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            if status == 0:
                # As a server that was killed while it answered.
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            if status == 302:
                self.send_header("Location", "http://elsewhere.invalid/")
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        told.url = f"http://127.0.0.1:{server.server_port}"
        yield told
        server.shutdown()
        thread.join(10)
