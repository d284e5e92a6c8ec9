"""The records of an embedded topic: the last ones, new ones, and their number.

A record is a line that is not blank. A last line without a newline counts too.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from headgate._clock import Clock
from headgate.connectors.files.folder.topic import TopicFile, TopicFolder, list_files

_BLOCK = 1 << 20
_BACKWARD_BLOCK = 1 << 16
BLANK = b" \t\r\n"
_BLANK_LINE_MAY_START = re.compile(rb"\n[ \t\r\n]")


def tail(folder: TopicFolder, count: int) -> list[bytes]:
    """Return the last records in reading order, without their newlines.

    Files are read backwards and no further than needed.
    """
    return _tail_of(folder.files(), count)


def follow(
    folder: TopicFolder,
    *,
    clock: Clock,
    last: int = 0,
    every: timedelta = timedelta(milliseconds=200),
) -> Iterator[bytes]:
    """Yield the last records, then every new record, without end.

    This call decides what counts as new, not the first step of the iterator. Each file is read
    once. A missing folder is waited for.

    Args:
        folder: The topic.
        clock: Sleeps between two listings of the folder.
        last: How many existing records to yield first.
        every: The pause after a listing without new files.
    """
    return _follow(folder, folder.files(), last, clock, every)


def _follow(
    folder: TopicFolder, present: list[TopicFile], last: int, clock: Clock, every: timedelta
) -> Iterator[bytes]:
    yield from _tail_of(present, last)
    read = {file.relative for file in present}
    while True:
        new = list_files(folder.path, without=read)
        for file in new:
            read.add(file.relative)
            yield from read_records(file.path)
        if not new:
            clock.sleep(every)


def count_records(folder: TopicFolder) -> int:
    """Return the number of records; reads every file, in blocks."""
    return sum(_count(file.path) for file in list_files(folder.path))


def read_records(path: Path) -> Iterator[bytes]:
    """Yield the records of one file; nothing if it was deleted."""
    try:
        for _, line in read_lines(path):
            yield line.removesuffix(b"\r")
    except FileNotFoundError:
        return


def read_lines(path: Path, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the records that start in a range of bytes, without newline, with their first byte.

    Raises:
        FileNotFoundError: The file was deleted.
    """
    with path.open("rb") as file:
        at = first
        if first > 0:
            # A line belongs to the range in which it starts.
            file.seek(first - 1)
            at += len(file.readline()) - 1
        for line in file:
            if last is not None and at >= last:
                return
            if line.strip(BLANK):
                yield at, line.removesuffix(b"\n")
            at += len(line)


def _tail_of(files: Sequence[TopicFile], count: int) -> list[bytes]:
    backwards = (
        line.removesuffix(b"\r")
        for file in reversed(files)
        for _, line in read_backwards(file.path)
    )
    # Stop as early as possible: the line before the last may be far away.
    lines = list(itertools.islice(backwards, count))
    lines.reverse()
    return lines


def read_backwards(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a file with their first byte, last one first; none if it was deleted."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        # The parts of the line whose start is not known yet, last part first.
        pieces: list[bytes] = []
        at = file.seek(0, 2)
        while at > 0:
            start = max(0, at - _BACKWARD_BLOCK)
            file.seek(start)
            block = file.read(at - start)
            at = start
            end = len(block)
            while (newline := block.rfind(b"\n", 0, end)) >= 0:
                line = block[newline + 1 : end] + b"".join(reversed(pieces))
                pieces = []
                end = newline
                if line.strip(BLANK):
                    yield start + newline + 1, line
            pieces.append(block[:end])
        line = b"".join(reversed(pieces))
        if line.strip(BLANK):
            yield 0, line


def _count(path: Path) -> int:
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return 0
    records = 0
    # True if the unfinished line of the last block is not blank so far.
    begun = False
    with file:
        while block := file.read(_BLOCK):
            first = block.find(b"\n")
            if first < 0:
                begun = begun or bool(block.strip(BLANK))
                continue
            final = block.rfind(b"\n")
            records += begun or bool(block[:first].strip(BLANK))
            records += _count_lines(block, first, final)
            begun = bool(block[final + 1 :].strip(BLANK))
    return records + begun


def _count_lines(block: bytes, first: int, final: int) -> int:
    # Searching for blank lines is far cheaper than splitting.
    if _BLANK_LINE_MAY_START.search(block, first, final + 1):
        lines = block[first + 1 : final + 1].split(b"\n")
        return sum(1 for line in lines if line.strip(BLANK))
    return block.count(b"\n", first + 1, final + 1)
