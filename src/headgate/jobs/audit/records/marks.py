"""What a row says of the record it came from as a dead letter. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from typing import NamedTuple


class Letter(NamedTuple):
    """A dead letter.

    Attributes:
        origin: The source, or the operator in which a row failed.
        topic: Of the record; None where a row failed.
        raw: The record, or the row that failed; None where there is none or it was cut.
    """

    origin: str
    topic: str | None
    partition: int
    offset: int
    raw: bytes | None


def parse_letter(value: bytes | None) -> Letter | None:
    """Return the dead letter that a row is, or None where it is none."""
    try:
        content = json.loads(value or b"")
        topic = content["topic"]
        return Letter(
            str(content["source"]),
            None if topic is None else str(topic),
            int(content["partition"]),
            int(content["offset"]),
            _raw(content["raw"], int(content["bytes"])),
        )
    except (ValueError, TypeError, KeyError):
        return None


def _raw(text: str | None, size: int) -> bytes | None:
    if text is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return raw if len(raw) == size else None
