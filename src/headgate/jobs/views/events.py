"""The events of a job: the lines of its event files."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated

from headgate._codec import Form, JsonValue, Moment, alias, shaped
from headgate.jobs.event_files import EVENTS, KIND, EventCounts, count_events, lines_back
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import present_name

DEFAULT_LIMIT = 200

# A number in Python; every list in JSON that is paged has a text to continue with.
_Cursor = Annotated[int, Form(str, int, {"type": "string"})]
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
    facts: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Events:
    """A page of a job's events, oldest first.

    Attributes:
        total: The number of all events of the job.
        skipped: The number of events between the requested number and the first one here.
        last: The number of the last event here: the events after it are the next page.
    """

    job: str
    events: tuple[JobEvent, ...]
    total: int
    skipped: int
    last: _Cursor = field(default=0, metadata=alias("next"))

    @property
    def has_more(self) -> bool:
        """Whether there are events after the last one here."""
        return self.last < self.total

    __get_pydantic_core_schema__ = shaped(computed={"more": "has_more"})


def list_events(
    home: JobFolder,
    *,
    after: int | None = None,
    limit: int = DEFAULT_LIMIT,
    before: int | None = None,
) -> Events:
    """Return a page of a job's events, oldest first: the newest ones, or the first after a number.

    Args:
        after: Page forward: the oldest events with a greater number; None for the newest events.
        limit: The maximum number of events.
        before: Only events with a smaller number, to page back.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    end = counts.lines if before is None else min(counts.lines, before - 1)
    begin = max(1, end - limit + 1) if after is None else after + 1
    # Lines are read from the end, so the last ones that fit are the oldest.
    page: deque[tuple[int, bytes]] = deque(maxlen=limit)
    for number, line in lines_back(file, counts):
        if number < begin:
            break
        if number <= end:
            page.append((number, line))
    seen = after or 0
    first, last = (page[-1][0], page[0][0]) if page else (seen + 1, seen)
    parsed = (_event(number, line) for number, line in reversed(page))
    events = tuple(event for event in parsed if event is not None)
    return Events(home.name, events, counts.lines, first - 1 - seen, last)


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
        kind = present_name(content["event"])
        return JobEvent(number, datetime.fromisoformat(content["at"]), kind, facts)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
