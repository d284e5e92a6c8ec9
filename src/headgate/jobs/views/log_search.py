"""Searching a job's log: all of its files, also those that were rolled."""

from __future__ import annotations

import enum
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.jobs.event_files import OLD
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.views.logs import Log, get_log, open_log

DEFAULT_LINES = 200

_PIECE = 1 << 20
# The beginning of an entry in Spark's log; the lines of a stack trace have none.
_ENTRY = re.compile(
    rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ([A-Z]+) "
    # In JSON, an entry is one line.
    rb'|\{"at":"[^"]*","level":"([A-Z]+)"'
)


class LogLevel(enum.StrEnum):
    """The levels of Spark's log, the least important first."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


# FATAL counts as an error, TRACE as less than everything.
_RANKS = {b"TRACE": -1, b"FATAL": 3} | {
    level.name.encode(): rank for rank, level in enumerate(LogLevel)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which lines of a log are wanted.

    Attributes:
        text: Lines that contain it, in upper or lower case; empty for all.
        level: Entries of this level or a more important one, with their stack traces; None for all.
    """

    text: str = ""
    level: LogLevel | None = None

    @property
    def is_empty(self) -> bool:
        return not self.text and self.level is None


@dataclass(frozen=True, slots=True)
class LogMatches:
    """Lines of a log that were searched for.

    Attributes:
        lines: The last matching lines, oldest first; bytes that are not UTF-8 are shown as `\\xff`.
        total: The number of all matching lines.
    """

    lines: tuple[str, ...]
    total: int


class LineFilter:
    """Decides for one line after the other; a line without a level belongs to the entry before."""

    def __init__(self, wanted: LogFilter) -> None:
        self._text = wanted.text.encode().lower()
        self._least = None if wanted.level is None else _RANKS[wanted.level.name.encode()]
        self._is_wanted = self._least is None

    def keeps(self, line: bytes) -> bool:
        """Return True if the next line is wanted."""
        if self._least is not None:
            entry = _ENTRY.match(line)
            if entry is not None:
                level = entry[1] or entry[2]
                self._is_wanted = _RANKS.get(level, 0) >= self._least
        return self._is_wanted and self._text in line.lower()

    def can_skip(self, piece: bytes) -> bool:
        """Return True if no line of a piece is wanted, which is quicker to find out."""
        return self._least is None and bool(self._text) and self._text not in piece.lower()


def search_log(
    home: JobFolder,
    log: Log,
    wanted: LogFilter,
    *,
    last: int = DEFAULT_LINES,
    executor: str | None = None,
) -> LogMatches:
    """Return the last lines of a whole log that match.

    Args:
        last: The maximum number of lines; all are counted.
        executor: The id of the executor, for the log of one.

    Raises:
        HeadgateError: LOG_NOT_FOUND, LOG_WITHOUT_LEVELS.
    """
    lines: deque[bytes] = deque(maxlen=last)
    total = 0
    for line in filter_log(home, log, wanted, executor=executor):
        lines.append(line)
        total += 1
    texts = tuple(line.decode("utf-8", errors="backslashreplace") for line in lines)
    return LogMatches(texts, total)


def filter_log(
    home: JobFolder, log: Log, wanted: LogFilter, *, executor: str | None = None
) -> Iterator[bytes]:
    """Return all lines of a whole log that match, oldest first, without their newlines.

    Raises:
        HeadgateError: LOG_NOT_FOUND, LOG_WITHOUT_LEVELS; before the first line.
    """
    check_filter(log, wanted)
    file, lines = get_log(home, log, executor=executor), LineFilter(wanted)
    # What else lies beside an executor's log, links included, the user's code may have put there.
    parts = [file] if log is Log.EXECUTOR else _list_parts(file)
    return (line for part in parts for line in _matching(part, lines))


def check_filter(log: Log, wanted: LogFilter) -> None:
    """Refuse a level for a log whose lines have none.

    Raises:
        HeadgateError: LOG_WITHOUT_LEVELS.
    """
    if wanted.level is not None and log is not Log.SPARK:
        raise HeadgateError(
            "LOG_WITHOUT_LEVELS",
            f"cannot search log {log.value!r} by level: only the lines of log 'spark' have levels",
            hint="search for a text instead, or in log 'spark'",
        )


def _list_parts(file: Path) -> list[Path]:
    """Return the files of a log, oldest first: rolled ones, and the present one."""
    rolled = [
        *(part for part in file.parent.glob(f"{file.name}.*") if part.suffix[1:].isdigit()),
        *(part for part in (file.with_name(OLD),) if file.name != OLD and part.is_file()),
    ]
    dated = []
    for part in rolled:
        # The oldest one may be removed at any time.
        with suppress(FileNotFoundError):
            dated.append((part.stat().st_mtime_ns, part))
    return [*(part for _, part in sorted(dated)), file]


def _matching(file: Path, lines: LineFilter) -> Iterator[bytes]:
    with suppress(FileNotFoundError), open_log(file) as source:
        rest = b""
        while piece := source.read(_PIECE):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            if newline and not lines.can_skip(whole):
                yield from (line for line in whole.split(b"\n") if lines.keeps(line))
        if rest and lines.keeps(rest):
            yield rest
