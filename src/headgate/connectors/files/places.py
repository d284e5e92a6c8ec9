"""The records of an embedded topic by place: the file, and the first byte of a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.connectors.contract.places import PlacedRecord, Send, Spot, Stretch
from headgate.connectors.files.folder.ledger import LedgerEntry
from headgate.connectors.files.folder.records import BLANK, read_backwards, read_lines
from headgate.connectors.files.folder.topic import SUFFIX, TopicFile, TopicFolder, partition_of
from headgate.connectors.files.written import FILE


@dataclass(frozen=True, slots=True)
class FilesPlaces:
    """One embedded topic.

    Attributes:
        path: The topic's folder.
    """

    path: Path

    def last(self, count: int) -> list[PlacedRecord]:
        """Return the last records in reading order; files are read no further than needed."""
        records: list[PlacedRecord] = []
        for file in reversed(self._folder().files()):
            for byte, line in read_backwards(file.path):
                if len(records) >= count:
                    return records[::-1]
                records.append(_record(file, byte, line))
        return records[::-1]

    def stretches(self, at_most: int | None = None) -> list[Stretch]:  # noqa: ARG002
        """Return the files in reading order; files never change, so each is read once."""
        files = self._folder().files()
        return [Stretch(file.relative, 0, file.size, 0) for file in files]

    def read(self, stretch: Stretch) -> Iterator[PlacedRecord]:
        path = self.path / stretch.part
        try:
            stat = path.stat()
            file = TopicFile(path, stretch.part, stat.st_size, stat.st_mtime_ns)
            for byte, line in read_lines(path, stretch.first):
                yield _record(file, byte, line)
        except FileNotFoundError:
            return

    def find(self, places: Collection[str]) -> dict[str, PlacedRecord]:
        wanted: dict[str, set[int]] = defaultdict(set)
        for place in places:
            name, _, digits = place.rpartition(":")
            if digits.isascii() and digits.isdecimal():
                wanted[name].add(int(digits))
        records = {}
        for file in self._folder().files() if wanted else ():
            for byte in sorted(wanted.get(name_file(file.relative), ())):
                line = _line_at(file.path, byte)
                if line is not None:
                    record = _record(file, byte, line)
                    records[record.place] = record
        return records

    def find_spots(self, spots: Collection[Spot]) -> dict[Spot, PlacedRecord]:
        """Return the records by file number in the ledger and first byte."""
        ledger = {entry.number: entry for entry in self._folder().read_ledger()}
        records = {}
        for number, byte in spots:
            entry = ledger.get(number)
            record = None if entry is None else self._at(entry, byte)
            if record is not None:
                records[number, byte] = record
        return records

    @contextmanager
    def sending(self) -> Iterator[Send]:
        """Open a publisher of lines: one file per call and partition."""
        folder = self._folder()

        def send(records: Sequence[PlacedRecord]) -> None:
            partitions = folder.partitions
            lines: dict[int, list[bytes]] = defaultdict(list)
            for record in records:
                # A folder created by hand may have files in subfolders of any name.
                partition = record.partition if record.partition < partitions else 0
                lines[partition].append((record.value or b"") + b"\n")
            for partition, some in lines.items():
                folder.publish(some, partition=partition, sync=True)

        yield send

    def _folder(self) -> TopicFolder:
        # A missing folder has no files.
        return TopicFolder(self.path)

    def _at(self, entry: LedgerEntry, byte: int) -> PlacedRecord | None:
        path = self.path / entry.path
        line = _line_at(path, byte)
        if line is None:
            return None
        # The kernel uses the time at which the file was first seen as a record's time.
        file = TopicFile(path, entry.path, entry.size, entry.seen * 1_000_000)
        return _record(file, byte, line)


def name_file(relative: str) -> str:
    """Return the name of a file in places: short for files of jobs, and without slashes."""
    folder, _, name = relative.rpartition("/")
    match = FILE.fullmatch(name)
    # The number of a job's task is also the partition.
    if match is not None and folder == f"part-{int(match['task'])}":
        return f"{match['lineage']}-{int(match['batch'])}-{int(match['task'])}"
    return relative.removesuffix(SUFFIX).replace("/", "@")


def _record(file: TopicFile, byte: int, line: bytes) -> PlacedRecord:
    return PlacedRecord(
        place=f"{name_file(file.relative)}:{byte}",
        partition=partition_of(file.relative),
        timestamp=file.modified_ns // 1_000_000,
        key=None,
        value=line,
    )


def _line_at(path: Path, byte: int) -> bytes | None:
    """Return the line that starts at a byte, without its newline; None if no line starts there."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, byte - 1))
            begins = byte == 0 or file.read(1) == b"\n"
            line = file.readline() if begins else b""
    except FileNotFoundError:
        return None
    return line.removesuffix(b"\n") if line.strip(BLANK) else None
