"""Embedded topics as input of an audit: lines by their bytes, and rows by their file names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headgate.connectors.contract.audit import (
    AuditedRun,
    Input,
    InputRecord,
    Meter,
    OutputRows,
    Passed,
    Row,
    Standing,
    input_gone,
    unknown_begin,
)
from headgate.connectors.files.descriptor import Files
from headgate.connectors.files.folder.ledger import read_ledger
from headgate.connectors.files.folder.records import read_lines, read_records
from headgate.connectors.files.folder.topic import TopicFolder, list_files, partition_of
from headgate.connectors.files.positions import parse_position
from headgate.connectors.files.written import FILE

shows_places = False

# After every batch: nothing counts of a run that is not an ancestor of the audited one.
_ALL = 1 << 62


def open_input(job: str, files: Files, begin: str | None, end: str) -> Input:
    """Return the lines that a run read, between two positions of a file number and a byte.

    Raises:
        HeadgateError: AUDIT_INPUT_GONE, TOPIC_NOT_FOUND, TOPIC_LEDGER_BROKEN.
    """
    folder = TopicFolder(Path(files.path))
    meta = folder.get_meta()
    bounds = [parse_position(position) for position in (begin, end) if position is not None]
    if any(position.topic != meta.id for position in bounds):
        raise input_gone(job, f"topic {files.name!r} was recreated after the run read it")
    places = [(position.file, position.byte) for position in bounds]
    start, stop = ((0, 0) if begin is None else places[0]), places[-1]
    entries = read_ledger(folder.path)
    partitions = sorted({partition_of(entry.path) for entry in entries})

    def read_range() -> Iterator[InputRecord]:
        for entry in entries:
            first = start[1] if entry.number == start[0] else 0
            last = stop[1] if entry.number == stop[0] else entry.size
            if not start[0] <= entry.number <= stop[0] or first >= last:
                continue
            file, place = folder.path / entry.path, partitions.index(partition_of(entry.path))
            try:
                for at, line in read_lines(file, first, last):
                    yield InputRecord(place, files.name, entry.number, at, line.rstrip(b"\r"))
            except FileNotFoundError as error:
                raise input_gone(job, f"{file} was deleted") from error

    def standing(number: int, offset: int) -> Standing:
        if (number, offset) >= stop:
            return Standing.AHEAD
        return Standing.BEFORE if (number, offset) < start else Standing.WITHIN

    return Input(
        files.name,
        lambda meter: meter.over(read_range(), files.name, None),
        standing,
        tuple(map(str, partitions)),
        notes=() if begin is not None else (unknown_begin(files.name),),
    )


def open_rows(run: AuditedRun, topic: Files) -> OutputRows:
    """Return the lines that runs wrote: file names state the run and the batch."""

    def read_all() -> Iterator[tuple[bytes, re.Match[str] | None]]:
        for file in list_files(Path(topic.path)):
            match = FILE.fullmatch(file.path.name)
            for line in read_records(file.path):
                yield line, match

    def read(passed: Passed, meter: Meter) -> Iterator[Row]:
        for line, match in meter.over(read_all(), topic.name, None):
            if match is None:
                passed.foreign += 1
            elif match["lineage"] != run.lineage:
                passed.other_runs += 1
                if int(match["batch"]) > run.earlier.get(match["lineage"], _ALL):
                    yield Row(None, -1, -1, line, is_earlier=True)
            else:
                passed.rows += 1
                yield Row(None, -1, -1, line, int(match["batch"]) > run.batch)

    return OutputRows(read)
