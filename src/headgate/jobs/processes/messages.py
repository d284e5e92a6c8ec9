"""Messages between processes: JSON objects, one a line, in UTF-8."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import RawIOBase
from typing import IO, Any

Message = Mapping[str, Any]


class GarbledMessageError(ValueError):
    """A line that is not a message."""


def to_line(message: Message) -> bytes:
    """Return a message as the line that is sent."""
    return json.dumps(message).encode() + b"\n"


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the message that `to_line` made a line of, or raise GarbledMessageError."""
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise GarbledMessageError(_show(line)) from error
    if not isinstance(message, dict):
        raise GarbledMessageError(_show(line))
    return message


def receive(stream: IO[bytes] | RawIOBase, *, longest: int = -1) -> dict[str, Any] | None:
    """Return the next message of a stream; None where the other side is gone.

    Half a line is what a process leaves that was killed, and counts as its end.

    Args:
        longest: The most bytes that a line may have; a longer one counts as the end.

    Raises:
        GarbledMessageError: The line is not a message.
    """
    line = stream.readline(longest)
    return parse_line(line) if line.endswith(b"\n") else None


def send(descriptor: int, message: Message) -> None:
    """Write a message, whole, to a descriptor."""
    line = to_line(message)
    while line:
        line = line[os.write(descriptor, line) :]


def _show(line: bytes) -> str:
    """Return the beginning of a line, as far as it helps to find where it comes from."""
    return f"a line that is not a message: {line[:80]!r}"
