"""What a row on Kafka says of the record it came from, by the sink's mark. Pure."""

from __future__ import annotations

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
