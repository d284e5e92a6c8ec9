"""What a row says of the record it came from: by the sink's mark, or as a dead letter. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

# The header of every row on Kafka that came from one record: lineage, source, partition and offset,
# between slashes.
HEADER = "headgate"


class Mark(NamedTuple):
    """The record that a row came from, and the run that wrote the row."""

    lineage: str
    source: str
    partition: int
    offset: int


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


def find_mark(headers: Iterable[tuple[str, bytes | None]]) -> Mark | None:
    """Return the mark of a row, or None where it has none that can be read."""
    for name, value in headers:
        if name == HEADER and value is not None:
            return _parse_mark(value)
    return None


def _parse_mark(value: bytes) -> Mark | None:
    head, _, offset = value.rpartition(b"/")
    known = _parse_head(head)
    return Mark(*known, int(offset)) if known is not None and offset.isdigit() else None


@lru_cache(maxsize=4096)
def _parse_head(head: bytes) -> tuple[str, str, int] | None:
    """Return lineage, source and partition, which are the same in very many rows."""
    try:
        lineage, source, partition = head.decode().split("/")
    except ValueError:
        return None
    return (lineage, source, int(partition)) if partition.isdecimal() else None


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
