"""The mark of a row on a broker: the record it came from, and the run that wrote it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from headgate.connectors.audit import Passed, Row

# The header (Kafka) or property (Pulsar) of a row that came from one record: lineage, source,
# partition and offset, separated by slashes.
HEADER = "headgate"


class Mark(NamedTuple):
    """The record that a row came from, and the run that wrote the row."""

    lineage: str
    source: str
    partition: int
    offset: int


class MarkedRecord(Protocol):
    """A record of an output."""

    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]: ...

    @property
    def value(self) -> bytes | None: ...


def rows_of(
    records: Iterable[MarkedRecord], lineage: str, earlier: Mapping[str, int], passed: Passed
) -> Iterator[Row]:
    """Yield the rows of a run and of the runs it comes from, and count all records.

    Args:
        lineage: The run that is audited.
        earlier: The runs that it comes from.
    """
    for record in records:
        mark = find_mark(record.headers)
        if mark is None:
            passed.foreign += 1
        elif mark.lineage == lineage:
            passed.rows += 1
            yield Row(mark.source, mark.partition, mark.offset, record.value)
        else:
            passed.other_runs += 1
            if mark.lineage in earlier:
                yield Row(mark.source, mark.partition, mark.offset, record.value, is_earlier=True)


def find_mark(headers: Iterable[tuple[str, bytes | None]]) -> Mark | None:
    """Return the mark of a row, or None if it has no readable mark."""
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
