"""HTTP on one connection: uvicorn's protocol, with limits on connections and slow headers."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headgate.errors import Domain, HeadgateError
from headgate.server.security.connections import Connections, limit_connections
from headgate.server.security.limits import Limits


class LimitedProtocol(HttpToolsProtocol):
    """Closes a connection whose headers do not arrive in time, or that has no place.

    Attributes:
        places: The open connections of the server.
        longest_s: The seconds in which a request's headers must arrive.
    """

    places: ClassVar[Connections]
    longest_s: ClassVar[float]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._has_begun = False
        self._is_websocket = False
        if self.places.add(transport, self.client[0] if self.client else "local"):
            self._start_timer()
        else:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _too_many())

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.places.remove(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_waiting():
            self._has_begun = True
            # Not started again by further data: a slow header arrives byte by byte.
            self._start_timer()
        else:
            self._stop_timer()
            self.places.serve(self.transport)

    def handle_websocket_upgrade(self) -> None:
        self._is_websocket = True
        super().handle_websocket_upgrade()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_waiting():
            # uvicorn limits the time until the first byte of the next request.
            self._has_begun = False
            self.places.wait(self.transport)

    def _is_waiting(self) -> bool:
        """Return whether the server has no complete headers of a request to answer."""
        if self._is_websocket:
            return False
        # uvicorn 0.54: a cycle begins with complete headers, and there is none before.
        return self.cycle is None or self.cycle.response_complete

    def _start_timer(self) -> None:
        if self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.longest_s, self._end_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_slow(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._has_begun:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _too_slow(self.longest_s))
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, error: HeadgateError) -> None:
        body = json.dumps({**error.as_dict(), "domain": error.domain.value}).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def limited_protocol(limits: Limits) -> type[LimitedProtocol]:
    """Return the protocol of one server's connections, which share its limits."""

    class Limited(LimitedProtocol):
        places = Connections(limit_connections(limits.connections))
        longest_s = limits.headers.total_seconds()

    return Limited


def _too_slow(longest_s: float) -> HeadgateError:
    return HeadgateError(
        "BAD_REQUEST",
        f"cannot read the request: its headers did not arrive within {longest_s:g} s",
        hint="send the request again",
    )


def _too_many() -> HeadgateError:
    return HeadgateError(
        "SERVER_BUSY",
        "cannot accept the connection: too many are open",
        hint="close other connections, or try again in a moment",
        domain=Domain.EXTERNAL,
        retryable=True,
    )
