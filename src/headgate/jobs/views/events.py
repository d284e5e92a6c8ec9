"""What happened to a job, as those see it who look from outside: lines of its event files."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate._codec import Moment, alias
from headgate.jobs.event_files import EVENTS, KIND, EventCounts, count_events, lines_back
from headgate.jobs.job_folder import JobFolder

DEFAULT_LIMIT = 200

_NO_FACTS = frozenset({"format", "at", "event"})


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One thing that happened.

    Attributes:
        number: Counts from 1 with the first that ever happened to the job.
        kind: A state of the job, or what else happened: CHECKPOINT, FAILURE, INTENT.
        facts: What else is told of it.
    """

    number: int
    at: Moment
    kind: str = field(metadata=alias("event"))
    facts: Mapping[str, Any]


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


def list_events(
    home: JobFolder, *, after: int = 0, limit: int = DEFAULT_LIMIT, before: int | None = None
) -> Events:
    """Return what happened to a job: the newest events, oldest of them first.

    Args:
        after: Only events with a greater number; whoever follows a job gives the last one seen.
        limit: How many at most; the newest stay.
        before: Only events with a smaller number, to page back from the first one seen.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    last = counts.lines if before is None else min(counts.lines, before - 1)
    first = max(after + 1, last - limit + 1, 1)
    found = []
    for event in read_back(file, counts):
        if event.number < first:
            break
        if event.number <= last:
            found.append(event)
    return Events(home.name, tuple(found[::-1]), counts.lines, max(0, first - 1 - after))


def read_back(
    file: Path, counts: EventCounts, *, kinds: Container[str] | None = None
) -> Iterator[JobEvent]:
    """Yield the events of the lines that were counted, newest first; damaged ones are left out.

    Args:
        kinds: Those that are wanted, all by default; others are not parsed.
    """
    for number, line in lines_back(file, counts):
        found = None if kinds is None else KIND.search(line)
        if kinds is not None and (found is None or found[1].decode() not in kinds):
            continue
        event = _event(number, line)
        if event is not None:
            yield event


def _event(number: int, line: bytes) -> JobEvent | None:
    try:
        told = json.loads(line)
        facts = {name: value for name, value in told.items() if name not in _NO_FACTS}
        return JobEvent(number, datetime.fromisoformat(told["at"]), str(told["event"]), facts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
