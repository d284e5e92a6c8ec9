"""The events of a job: the lines of its event files."""

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
    """An event of a job.

    Attributes:
        number: Counts from 1 over the life of the job.
        kind: A state of the job, or another kind such as CHECKPOINT, FAILURE or INTENT.
        facts: The other fields of the event.
    """

    number: int
    at: Moment
    kind: str = field(metadata=alias("event"))
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Events:
    """The newest events of a job after a number, oldest first.

    Attributes:
        total: The number of all events of the job.
        skipped: The number of events between the requested number and the first one here.
    """

    job: str
    events: tuple[JobEvent, ...]
    total: int
    skipped: int


def list_events(
    home: JobFolder, *, after: int = 0, limit: int = DEFAULT_LIMIT, before: int | None = None
) -> Events:
    """Return the newest events of a job, oldest first.

    Args:
        after: Only events with a greater number, such as the last one seen.
        limit: The maximum number of events.
        before: Only events with a smaller number, to page back.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    last = counts.lines if before is None else min(counts.lines, before - 1)
    first = max(after + 1, last - limit + 1, 1)
    events = []
    for event in read_back(file, counts):
        if event.number < first:
            break
        if event.number <= last:
            events.append(event)
    return Events(home.name, tuple(events[::-1]), counts.lines, max(0, first - 1 - after))


def read_back(
    file: Path, counts: EventCounts, *, kinds: Container[str] | None = None
) -> Iterator[JobEvent]:
    """Yield the events of the counted lines, newest first, without corrupted ones.

    Args:
        kinds: By default all; lines of other kinds are not parsed.
    """
    for number, line in lines_back(file, counts):
        if kinds is not None:
            kind = KIND.search(line)
            if kind is None or kind[1].decode() not in kinds:
                continue
        event = _event(number, line)
        if event is not None:
            yield event


def _event(number: int, line: bytes) -> JobEvent | None:
    try:
        content = json.loads(line)
        facts = {name: value for name, value in content.items() if name not in _NO_FACTS}
        return JobEvent(number, datetime.fromisoformat(content["at"]), content["event"], facts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
