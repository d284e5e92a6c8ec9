"""The logs of a job: their last lines, and those that come."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO

from headgate._clock import Clock, SystemClock
from headgate.errors import HeadgateError
from headgate.jobs.detach import supervisor_output
from headgate.jobs.registry import get_home

_PIECE = 1 << 16
_LOOK_EVERY = timedelta(milliseconds=250)


class Log(enum.StrEnum):
    """Whose words a log holds."""

    SPARK = "spark"
    DRIVER = "driver"
    SUPERVISOR = "supervisor"
    EVENTS = "events"


def get_log(root: Path, name: str, log: Log) -> Path:
    """Return the file of a job's log, or refuse where nothing was written yet.

    Raises:
        HeadgateError: JOB_NOT_FOUND or LOG_NOT_FOUND.
    """
    home = get_home(root, name, verb="read the log of")
    files = {
        Log.SPARK: home.log_file,
        Log.DRIVER: home.driver_output,
        Log.SUPERVISOR: supervisor_output(home),
        Log.EVENTS: home.path / "events.jsonl",
    }
    file = files[log]
    if file.is_file():
        return file
    there = [f"--{each}" for each in files if files[each].is_file() and each is not Log.SPARK]
    raise HeadgateError(
        "LOG_NOT_FOUND",
        f"cannot read the log of job {name!r}: nothing was written to {file} yet",
        hint=" ".join(("headgate logs", name, *there[:1])),
    )


def tail_log(file: Path, *, last: int) -> list[bytes]:
    """Return the last lines of a file, without their newlines; its end is all that is read."""
    with file.open("rb") as source:
        return _tail(source, last)


def follow_log(file: Path, *, last: int, clock: Clock | None = None) -> Iterator[bytes]:
    """Yield the last lines of a file, then every new one, for ever; a rolled file is followed."""
    clock = clock or SystemClock()
    source = file.open("rb")
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
                source, rest = file.open("rb"), b""
                continue
            clock.sleep(_LOOK_EVERY)
    finally:
        source.close()


def _tail(source: IO[bytes], last: int) -> list[bytes]:
    """Return the last whole lines, and leave the file behind them."""
    end = source.seek(0, os.SEEK_END)
    start, text = end, b""
    while start > 0 and text.count(b"\n") <= last:
        start = max(0, start - _PIECE)
        source.seek(start)
        text = source.read(end - start)
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
