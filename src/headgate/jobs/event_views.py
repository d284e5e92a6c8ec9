"""What happened to a job, as those see it who look from outside: lines of its events.jsonl.

The file only grows. Its end is read and parsed; of what stands before only newlines and kinds are
counted, and that once in a process.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from headgate.jobs.registry import get_home

EVENTS = "events.jsonl"
DEFAULT_LIMIT = 200

_PIECE = 1 << 18
# Quotes inside a text are escaped, so that no message looks like a kind.
_KIND = re.compile(rb'"event": "([A-Z_]+)"')
_NO_FACTS = frozenset({"format", "at", "event"})
_MOST_COUNTED = 256


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One thing that happened.

    Attributes:
        number: Counts from 1 with the first that ever happened to the job.
        kind: A state of the job, or what else happened: CHECKPOINT, FAILURE, INTENT.
        facts: What else is told of it.
    """

    number: int
    at: datetime
    kind: str
    facts: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        return {
            "number": self.number,
            "at": self.at.isoformat(),
            "event": self.kind,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> JobEvent:
        """Return the event that `to_json` told of."""
        at = datetime.fromisoformat(told["at"])
        return cls(int(told["number"]), at, str(told["event"]), dict(told["facts"]))


@dataclass(frozen=True, slots=True)
class Events:
    """The newest events of a job behind some number, oldest first.

    Attributes:
        total: How many there ever were.
        skipped: How many lie between the number that was asked for and the first one here.
    """

    job: str
    events: tuple[JobEvent, ...]
    total: int
    skipped: int

    def to_json(self) -> dict[str, Any]:
        """Return the events as JSON values."""
        return {
            "job": self.job,
            "events": [each.to_json() for each in self.events],
            "total": self.total,
            "skipped": self.skipped,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Events:
        """Return the events that `to_json` told of."""
        events = tuple(JobEvent.from_json(each) for each in told["events"])
        return cls(str(told["job"]), events, int(told["total"]), int(told["skipped"]))


def list_events(
    root: Path, job: str, *, after: int = 0, limit: int = DEFAULT_LIMIT, before: int | None = None
) -> Events:
    """Return what happened to a job: the newest events, oldest of them first.

    Args:
        after: Only events with a greater number; whoever follows a job gives the last one seen.
        limit: How many at most; the newest stay.
        before: Only events with a smaller number, to page back from the first one seen.
    """
    file = get_home(root, job, verb="list the events of").path / EVENTS
    counts = count_events(file)
    last = counts.lines if before is None else min(counts.lines, before - 1)
    first = max(after + 1, last - limit + 1, 1)
    found = []
    for event in read_back(file, counts):
        if event.number < first:
            break
        if event.number <= last:
            found.append(event)
    return Events(job, tuple(found[::-1]), counts.lines, max(0, first - 1 - after))


@dataclass(slots=True)
class EventCounts:
    """How many lines a file has, and how many of each kind.

    Attributes:
        size: The bytes that were counted: whole lines.
    """

    size: int = 0
    lines: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


_counted: dict[tuple[str, int], EventCounts] = {}
_counting = threading.Lock()


def count_events(file: Path) -> EventCounts:
    """Return how many whole lines a file has and of which kinds; what was counted stays known."""
    try:
        with file.open("rb") as source:
            status = os.fstat(source.fileno())
            key = (str(file.absolute()), status.st_ino)
            with _counting:
                known = _counted.get(key)
                if known is None or known.size > status.st_size:
                    known = EventCounts()
                found = _count_on(source, known, status.st_size)
                while len(_counted) >= _MOST_COUNTED:
                    _counted.pop(next(iter(_counted)))
                _counted[key] = found
            return found
    except FileNotFoundError:
        return EventCounts()


def _count_on(source: IO[bytes], known: EventCounts, end: int) -> EventCounts:
    if known.size == end:
        return known
    source.seek(known.size)
    whole, newline, _ = source.read(end - known.size).rpartition(b"\n")
    text = whole + newline
    kinds = Counter(known.kinds)
    kinds.update(kind.decode() for kind in _KIND.findall(text))
    return EventCounts(known.size + len(text), known.lines + text.count(b"\n"), kinds)


def read_back(
    file: Path, counts: EventCounts, *, kinds: Container[str] | None = None
) -> Iterator[JobEvent]:
    """Yield the events of the lines that were counted, newest first; damaged ones are left out.

    Args:
        kinds: Those that are wanted, all by default; others are not parsed.
    """
    number = counts.lines + 1
    for line in _lines_back(file, counts.size):
        number -= 1
        found = None if kinds is None else _KIND.search(line)
        if kinds is not None and (found is None or found[1].decode() not in kinds):
            continue
        event = _event(number, line)
        if event is not None:
            yield event


def _lines_back(file: Path, end: int) -> Iterator[bytes]:
    """Yield the lines before a place that is behind a newline, the last one first."""
    if end == 0:
        return
    with file.open("rb") as source:
        rest = b""
        # The newline that ends the last line begins no other.
        at = end - 1
        while at > 0:
            start = max(0, at - _PIECE)
            source.seek(start)
            first, *lines = (source.read(at - start) + rest).split(b"\n")
            yield from reversed(lines)
            rest, at = first, start
        yield rest


def _event(number: int, line: bytes) -> JobEvent | None:
    try:
        told = json.loads(line)
        facts = {name: value for name, value in told.items() if name not in _NO_FACTS}
        return JobEvent(number, datetime.fromisoformat(told["at"]), str(told["event"]), facts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
