"""The logs of a job: their last lines, and new ones."""

from __future__ import annotations

import enum
import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO

from headgate._clock import Clock, SystemClock
from headgate._codec import alias
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.metrics.executor_file import find_executors
from headgate.jobs.startup.background import supervisor_output
from headgate.jobs.views.executor_logs import get_executor_log

_PIECE = 1 << 16
_LOOK_EVERY = timedelta(milliseconds=250)
# The maximum size of a page.
_MOST_BYTES = 1 << 20
# The size of the end of a log in which the last lines are searched.
_MOST_BACK = 8 << 20
_POSITION = re.compile(r"(?P<inode>[0-9]{1,20}):(?P<byte>[0-9]{1,19})")


class Log(enum.StrEnum):
    """The logs of a job."""

    SPARK = "spark"
    DRIVER = "driver"
    SUPERVISOR = "supervisor"
    EVENTS = "events"
    EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines of a log.

    Attributes:
        lines: As text; bytes that are not UTF-8 are shown as `\\xff`.
        position: The `after` of the next page.
        more: Whether that page has lines already.
    """

    lines: tuple[str, ...]
    position: str = field(metadata=alias("next"))
    more: bool = False


def get_log(home: JobFolder, log: Log, *, executor: str | None = None) -> Path:
    """Return the file of a job's log.

    Args:
        executor: The id of the executor, for the log of one.

    Raises:
        HeadgateError: LOG_NOT_FOUND, if it does not exist yet, or is on another machine.
    """
    if log is Log.EXECUTOR:
        return get_executor_log(home.name, find_executors(home), executor)
    files = {
        Log.SPARK: home.log_file,
        Log.DRIVER: home.driver_output,
        Log.SUPERVISOR: supervisor_output(home),
        Log.EVENTS: home.path / "events.jsonl",
    }
    file = files[log]
    if file.is_file():
        return file
    others = [f"--{other}" for other in files if files[other].is_file() and other is not Log.SPARK]
    raise HeadgateError(
        "LOG_NOT_FOUND",
        f"cannot read the log of job {home.name!r}: nothing was written to {file} yet",
        hint=" ".join(("headgate logs", home.name, *others[:1])),
    )


def tail_log(file: Path, *, last: int) -> list[bytes]:
    """Return the last lines of a file, without their newlines; only its last 8 MiB are read."""
    with open_log(file) as source:
        return _tail(source, last)


def open_log(file: Path) -> IO[bytes]:
    """Open a log, which may be in a folder that other programs write to.

    Raises:
        HeadgateError: LOG_NOT_FOUND, if it is a link or no file: that of an executor could name
            any file that this process may read. FileNotFoundError if there is nothing.
    """
    try:
        # Without waiting for a writer, as the open of a pipe would.
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _not_a_file(file) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_a_file(file)
    return os.fdopen(handle, "rb")


def _not_a_file(file: Path) -> HeadgateError:
    return HeadgateError(
        "LOG_NOT_FOUND",
        f"cannot read log {file}: it is a link, or not a file",
        hint=f"ls -l {file.parent}",
    )


def read_log(file: Path, *, last: int, after: str | None = None) -> LogPage:
    """Return the last lines of a log, or the lines after a page.

    A log that was rolled meanwhile continues with the first line of the new file.

    Args:
        last: The number of lines; a page after another one has at most a megabyte.
        after: A page's position, or BAD_POSITION is raised.
    """
    with open_log(file) as source:
        there = os.fstat(source.fileno())
        if after is None:
            lines, reached = _tail(source, last), source.tell()
            more = False
        else:
            start = source.seek(_find_place(after, there))
            piece = source.read(_MOST_BYTES)
            whole, newline, rest = piece.rpartition(b"\n")
            if len(rest) == _MOST_BYTES:
                # A line that is longer than a page is split.
                whole, rest = rest, b""
            lines = whole.split(b"\n") if newline or whole else []
            reached = start + len(piece) - len(rest)
            more = len(piece) == _MOST_BYTES
    texts = tuple(line.decode("utf-8", errors="backslashreplace") for line in lines)
    return LogPage(texts, f"{there.st_ino}:{reached}", more)


def _find_place(position: str, there: os.stat_result) -> int:
    match = _POSITION.fullmatch(position)
    if match is None:
        raise HeadgateError(
            "BAD_POSITION",
            f"cannot read a log from {position!r} on: it is not a log position",
            hint="use the position of the previous response, or omit it",
        )
    inode, byte = int(match["inode"]), int(match["byte"])
    return byte if inode == there.st_ino and byte <= there.st_size else 0


def follow_log(file: Path, *, last: int, clock: Clock | None = None) -> Iterator[bytes]:
    """Yield the last lines of a file, then every new one, without end, also after a roll."""
    clock = clock or SystemClock()
    source = open_log(file)
    try:
        yield from _tail(source, last)
        rest = b""
        while True:
            piece = source.read(_PIECE)
            if piece:
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
                continue
            if _was_rolled(source, file):
                source.close()
                source, rest = open_log(file), b""
                continue
            clock.sleep(_LOOK_EVERY)
    finally:
        source.close()


def _tail(source: IO[bytes], last: int) -> list[bytes]:
    """Return the last complete lines, and leave the file positioned after them."""
    end = source.seek(0, os.SEEK_END)
    earliest = max(0, end - _MOST_BACK)
    start, newlines = end, 0
    pieces: list[bytes] = []
    while start > earliest and newlines <= last:
        before = max(earliest, start - _PIECE)
        source.seek(before)
        pieces.append(source.read(start - before))
        newlines += pieces[-1].count(b"\n")
        start = before
    text = b"".join(reversed(pieces))
    whole, _, rest = text.rpartition(b"\n")
    source.seek(end - len(rest))
    return whole.split(b"\n")[-last:] if last and (whole or text.startswith(b"\n")) else []


def _was_rolled(source: IO[bytes], file: Path) -> bool:
    try:
        there = file.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(source.fileno())
    return (there.st_ino, there.st_dev) != (ours.st_ino, ours.st_dev) or (
        there.st_size < source.tell()
    )
