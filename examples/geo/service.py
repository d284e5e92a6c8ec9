"""A small HTTP service that knows where cities are; no two answers are the same."""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import unquote

CITIES = {
    "Amsterdam": (52.37, 4.9),
    "Berlin": (52.52, 13.4),
    "Lisbon": (38.72, -9.14),
    "Oslo": (59.91, 10.75),
}


class Handler(BaseHTTPRequestHandler):
    """Answers `GET /cities/Berlin` with a position; an unknown city is 404."""

    protocol_version = "HTTP/1.1"
    answers = count(1)

    def do_GET(self) -> None:
        """Answer one request, after 20 ms."""
        time.sleep(0.02)
        place = CITIES.get(unquote(self.path.rpartition("/")[2]))
        if place is None:
            self._send(404, {"error": "no such city"})
        else:
            self._send(200, {"lat": place[0], "lon": place[1], "answer": next(self.answers)})

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        """Log nothing."""


class Service(ThreadingHTTPServer):
    """Lets a hundred calls wait until they are accepted."""

    daemon_threads = True
    request_queue_size = 100


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    with Service(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
