"""Checks whether a Kafka broker responds: one request in its protocol, over a plain socket."""

from __future__ import annotations

import socket
import struct
from datetime import timedelta

_METADATA = 3
# The last version of the request and response with fixed-size lengths.
_VERSION = 8
_CLIENT = b"headgate"


def is_serving(host: str, port: int, *, within: timedelta) -> bool:
    """Return True if the broker at this address has joined its cluster and accepts requests."""
    try:
        with socket.create_connection((host, port), timeout=within.total_seconds()) as link:
            link.sendall(_question())
            (size,) = struct.unpack(">i", _read(link, 4))
            return count_brokers(_read(link, size)) > 0
    except (OSError, struct.error):
        return False


def count_brokers(answer: bytes) -> int:
    """Return the number of brokers in a response; 0 before the broker has joined its cluster."""
    # The request's number and the throttle time come first.
    return int(struct.unpack_from(">iii", answer)[2])


def _question() -> bytes:
    head = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT)) + _CLIENT
    # No topics are requested, none created, no permissions listed.
    body = head + struct.pack(">i???", 0, False, False, False)
    return struct.pack(">i", len(body)) + body


def _read(link: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        piece = link.recv(size - len(got))
        if not piece:
            raise ConnectionResetError("the broker closed the connection")
        got += piece
    return got
