"""The files of a job's events: `events.jsonl`, and `events.old.jsonl` with those before it.

A full file replaces the old one. The first line of the next file is an event ROLLED with the number
of events of each kind before it, so that numbers and counts continue. Readers parse only the end of
a file; of the rest they count lines and kinds, once in a process.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

EVENTS = "events.jsonl"
OLD = "events.old.jsonl"
ROLLED = "ROLLED"
# Some twenty thousand events.
FULL = 4 << 20

_PIECE = 1 << 18
# Quotes inside a text are escaped, so a message never looks like a kind.
KIND = re.compile(rb'"event": "([A-Z_]+)"')
_MOST_COUNTED = 256


@dataclass(frozen=True, slots=True)
class EventCounts:
    """The number of a job's events, and of each kind.

    Attributes:
        size: The counted bytes of the file: complete lines.
        head: The first line of the counted file, which identifies it: an inode is soon reused.
    """

    size: int = 0
    lines: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    head: bytes = b""


_counted: dict[str, EventCounts] = {}
_counting = threading.Lock()


def append_event(folder: Path, event: dict[str, Any]) -> None:
    """Add a line to the events in a folder; only their one writer calls it."""
    file = folder / EVENTS
    # A file that cannot be rolled grows, so that no event is lost.
    with contextlib.suppress(OSError):
        if file.exists() and file.stat().st_size >= FULL:
            _roll(folder, event)
    line = json.dumps(event)
    with file.open("ab+") as target:
        # A full disk may have left an incomplete line.
        if target.tell() and not _ends_whole(target):
            line = f"\n{line}"
        target.write(f"{line}\n".encode())


def _roll(folder: Path, event: dict[str, Any]) -> None:
    """Replace the old events by the present ones; both files exist at every moment."""
    counts = count_events(folder / EVENTS)
    rolled = {name: event[name] for name in ("format", "at")} | {"event": ROLLED}
    rolled["before"] = {"events": counts.lines, "kinds": dict(counts.kinds)}
    making = folder / f".{EVENTS}.tmp"
    making.write_text(json.dumps(rolled) + "\n", encoding="utf-8")
    linked = folder / f".{OLD}.tmp"
    linked.unlink(missing_ok=True)
    os.link(folder / EVENTS, linked)
    linked.replace(folder / OLD)
    making.replace(folder / EVENTS)


def count_events(file: Path) -> EventCounts:
    """Return the number of events; only lines since the last call are counted."""
    try:
        with file.open("rb") as source:
            head, size = source.readline(), os.fstat(source.fileno()).st_size
            key = str(file.absolute())
            with _counting:
                known = _counted.get(key)
                if known is None or known.head != head or known.size > size:
                    known = _begin(head)
                counts = _count_on(source, known, size)
                while len(_counted) >= _MOST_COUNTED:
                    _counted.pop(next(iter(_counted)))
                _counted[key] = counts
            return counts
    except FileNotFoundError:
        return EventCounts()


def _count_on(source: IO[bytes], known: EventCounts, end: int) -> EventCounts:
    if known.size == end:
        return known
    source.seek(known.size)
    whole, newline, _ = source.read(end - known.size).rpartition(b"\n")
    text = whole + newline
    kinds = Counter(known.kinds)
    kinds.update(kind.decode() for kind in KIND.findall(text))
    lines = known.lines + text.count(b"\n")
    return EventCounts(known.size + len(text), lines, kinds, known.head)


def _begin(head: bytes) -> EventCounts:
    """Return the counts before a file with this first line."""
    try:
        event = json.loads(head)
        if event["event"] == ROLLED:
            kinds = {str(kind): int(count) for kind, count in event["before"]["kinds"].items()}
            return EventCounts(0, int(event["before"]["events"]), Counter(kinds), head)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return EventCounts(head=head)


def lines_back(file: Path, counts: EventCounts) -> Iterator[tuple[int, bytes]]:
    """Yield numbers and lines of the counted events, newest first, over both files."""
    number = counts.lines
    wanted = counts
    # The counted file may have become the old one since.
    for path in (file, file.with_name(OLD)):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as source:
            head = source.readline()
            if number < counts.lines and head != wanted.head:
                # The file before the counted one: its lines end where that one begins.
                wanted = count_events(path)
            if head == wanted.head and wanted.lines == number:
                for line in _lines_back(source, wanted.size):
                    yield number, line
                    number -= 1


def _lines_back(source: IO[bytes], end: int) -> Iterator[bytes]:
    """Yield the lines before a position after a newline, the last one first."""
    if end == 0:
        return
    rest = b""
    # Without the newline of the last line.
    at = end - 1
    while at > 0:
        start = max(0, at - _PIECE)
        source.seek(start)
        first, *lines = (source.read(at - start) + rest).split(b"\n")
        yield from reversed(lines)
        rest, at = first, start
    yield rest


def lines_since(file: Path, number: int) -> list[bytes]:
    """Return the lines of the events after a number, as far as they still exist, oldest first."""
    newer = itertools.takewhile(
        lambda event: event[0] > number, lines_back(file, count_events(file))
    )
    return [line for _, line in newer][::-1]


def _ends_whole(file: IO[bytes]) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
