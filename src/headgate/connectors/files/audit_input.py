"""The records that a run read from an embedded topic."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from headgate.connectors.audit import (
    InputRecord,
    Meter,
    Standing,
    TopicRange,
    input_gone,
    unknown_begin,
)
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.ledger import LedgerEntry, read_ledger
from headgate.connectors.files.topic import TopicFolder

_BLANK = b" \t\r\n"
_PARTITION = re.compile(r"part-([0-9]+)/")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class FilesInput:
    """The lines that a run read: a range between two positions, each a file number and a byte."""

    job: str
    files: Files
    entries: tuple[LedgerEntry, ...]
    begin: Place
    end: Place
    gaps: str = ""
    notes: tuple[str, ...] = ()
    ranges: tuple[TopicRange, ...] = ()

    @property
    def topic(self) -> str:
        """The topic."""
        return self.files.name

    @property
    def partitions(self) -> tuple[str, ...]:
        """The numbers of the files' folders."""
        return tuple(sorted({_partition(entry) for entry in self.entries}, key=int))

    def read(self, meter: Meter) -> Iterator[InputRecord]:
        """Yield every line of the range that is not blank.

        Raises:
            HeadgateError: AUDIT_INPUT_GONE: a file was deleted.
        """
        return meter.over(self._read(), self.topic, None)

    def standing(self, number: int, offset: int) -> Standing:
        """Return the location of a position."""
        if (number, offset) >= self.end:
            return Standing.AHEAD
        return Standing.BEFORE if (number, offset) < self.begin else Standing.WITHIN

    def _read(self) -> Iterator[InputRecord]:
        places = {name: place for place, name in enumerate(self.partitions)}
        for entry, first, last in self._parts():
            partition = places[_partition(entry)]
            for at, line in _lines(self.job, Path(self.files.path) / entry.path, first, last):
                yield InputRecord(partition, self.topic, entry.number, at, line)

    def _parts(self) -> Iterator[tuple[LedgerEntry, int, int]]:
        for entry in self.entries:
            first = self.begin[1] if entry.number == self.begin[0] else 0
            last = self.end[1] if entry.number == self.end[0] else entry.size
            if self.begin[0] <= entry.number <= self.end[0] and first < last:
                yield entry, first, last


def open_input(job: str, files: Files, begin: str | None, end: str) -> FilesInput:
    """Return the lines that a run read.

    Args:
        begin: The start position; None for the start of the topic.
        end: The end position.

    Raises:
        HeadgateError: AUDIT_INPUT_GONE, TOPIC_NOT_FOUND, TOPIC_LEDGER_BROKEN.
    """
    folder = TopicFolder(Path(files.path))
    meta = folder.get_meta()
    bounds = [json.loads(position) for position in (begin, end) if position is not None]
    if any(position["topic"] != meta.id for position in bounds):
        raise input_gone(job, f"topic {files.name!r} was recreated after the run read it")
    places = [(int(position["file"]), int(position["byte"])) for position in bounds]
    return FilesInput(
        job,
        files,
        tuple(read_ledger(folder.path)),
        begin=(0, 0) if begin is None else places[0],
        end=places[-1],
        notes=() if begin is not None else (unknown_begin(files.name),),
    )


def _partition(entry: LedgerEntry) -> str:
    match = _PARTITION.match(entry.path)
    return match[1] if match else "0"


def _lines(job: str, file: Path, first: int, last: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that start in a range of bytes, each with its first byte."""
    try:
        content = file.open("rb")
    except FileNotFoundError as error:
        raise input_gone(job, f"{file} was deleted") from error
    with content:
        at = first
        if first > 0:
            # A line belongs to the range in which it starts.
            content.seek(first - 1)
            at += len(content.readline()) - 1
        while at < last:
            line = content.readline()
            if not line:
                return
            if line.strip(_BLANK):
                yield at, line.rstrip(b"\r\n")
            at += len(line)
