"""The mark of a row on Kafka, which names the record it came from. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

# The header of every row that came from one record: lineage, source, partition and offset,
# separated by slashes.
HEADER = "headgate"


class Mark(NamedTuple):
    """The record that a row came from, and the run that wrote the row."""

    lineage: str
    source: str
    partition: int
    offset: int


def find_mark(headers: Iterable[tuple[str, bytes | None]]) -> Mark | None:
    """Return the mark of a row, or None if it has no readable one."""
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
    """Return lineage, source and partition, which repeat in many rows."""
    try:
        lineage, source, partition = head.decode().split("/")
    except ValueError:
        return None
    return (lineage, source, int(partition)) if partition.isdecimal() else None
