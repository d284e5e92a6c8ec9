"""A service of the outside world: slow, unreliable, and with another answer each time."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ZONES = 5


class Service(ThreadingHTTPServer):
    """Answers `GET /zone/ID` with `{"zone": …, "answer": …}`; the answer is a number of its own.

    Attributes:
        calls: How often each id was asked for.
        given: The answers that each id was given.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.delay = delay
        self.calls: Counter[int] = Counter()
        self.given: dict[int, list[int]] = {}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """The address under which it is asked."""
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, asked: int) -> tuple[int, dict[str, Any]]:
        """Return a status and an answer; every 17th id fails at first, every eleventh always."""
        with self.lock:
            self.calls[asked] += 1
            attempt = self.calls[asked]
            if asked % 11 == 0 or (asked % 17 == 0 and attempt == 1):
                return 503, {"error": "try later"}
            number = sum(map(len, self.given.values()))
            self.given.setdefault(asked, []).append(number)
            return 200, {"zone": number % ZONES, "answer": number}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        time.sleep(self.server.delay)
        status, answer = self.server.answer(int(self.path.rpartition("/")[2]))
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        """Log nothing."""


@contextmanager
def served(delay: float = 0.0) -> Iterator[Service]:
    """Give a service that runs in this process."""
    with Service(delay) as service:
        thread = threading.Thread(target=service.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            service.shutdown()
            thread.join()


def orders(count: int) -> list[dict[str, Any]]:
    """Return orders from 1 on."""
    return [{"id": n, "note": f"order {n}"} for n in range(1, count + 1)]


def check(service: Service, count: int, answers: list[Any], failed: list[Any]) -> None:
    """Check that each order has one outcome, and that the service gave it."""
    ids = sorted(row["id"] for row in (*answers, *failed))
    assert ids == list(range(1, count + 1))
    assert sorted(row["id"] for row in failed) == [n for n in ids if n % 11 == 0]
    for row in answers:
        assert row["answer"] in service.given[row["id"]]
    for row in failed:
        assert row["note"] == f"order {row['id']}"
        assert row["failure"]["attempts"] == 2
        assert "503 Service Unavailable" in row["failure"]["error"]
