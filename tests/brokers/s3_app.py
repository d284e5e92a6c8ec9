"""Serves S3 on 127.0.0.1 from memory: moto's server, one request at a time.

moto looks for an object and creates it in two steps. S3 creates an object only once, so
requests must not run beside each other. Started by `s3_server.py` with the port as argument.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import run_simple
from werkzeug.wsgi import get_input_stream


class OneAtATime:
    """Reads each request completely, and then lets the application answer it alone."""

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._lost: set[str] = set()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        # A client that stalls while it sends must not keep the others waiting.
        body = get_input_stream(environ).read()
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        with self._lock:
            if self._loses_answer(environ):
                list(self._application(environ, _ignore))
                raise ConnectionError("the answer is lost")
            return list(self._application(environ, start))

    def _loses_answer(self, environ: Mapping[str, Any]) -> bool:
        """Tell whether a request is the first to write an object of `lost-answer/`."""
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] != "PUT" or "lost-answer" not in path or path in self._lost:
            return False
        self._lost.add(path)
        return True


class Handler(MotoRequestHandler):
    """Answers "Expect: 100-continue" once, and ends the connection of an answer that is lost.

    Clients on Netty take a second 100 for the answer, and all wait a minute for one that is lost.
    """

    def connection_dropped(
        self, error: BaseException, environ: dict[str, Any] | None = None
    ) -> None:
        """End the connection."""
        super().connection_dropped(error, environ)
        self.close_connection = True

    def handle_expect_100(self) -> bool:
        """Leave it to Werkzeug, which answers as well."""
        return True


def _ignore(*answer: object) -> None:
    pass


def main() -> None:
    """Serve until the process is ended."""
    application = OneAtATime(DomainDispatcherApplication(create_backend_app))
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        application,
        threaded=True,
        request_handler=Handler,
    )


if __name__ == "__main__":
    main()
