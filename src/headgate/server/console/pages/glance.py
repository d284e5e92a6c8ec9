"""All jobs at a glance, read from disk once for everybody who looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.views.job import JobView
from headgate.server.console.charts.sparkline import Trend
from headgate.server.context import ServerContext

# Ten browsers that look every 2 s cost the disk as much as one.
_FRESH_FOR_S = 1.0
_TREND_FRESH_FOR_S = 12.0
_ENDED_TREND_FRESH_FOR_S = 60.0
_TREND_OF = timedelta(minutes=15)
_TREND_POINTS = 40
# So that a home of many jobs is not read at a stroke; the others follow with the next looks.
_TRENDS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class Glance:
    """The jobs of a home, and how many records a second each has read lately."""

    jobs: tuple[JobView, ...]
    trends: Mapping[str, Trend]


@dataclass(slots=True)
class _Memory:
    lock: threading.Lock = field(default_factory=threading.Lock)
    at: float = float("-inf")
    jobs: tuple[JobView, ...] = ()
    trends: dict[str, tuple[float, Trend]] = field(default_factory=dict)


class Glances:
    """Remembers the last look at each home for a moment; safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._homes: dict[Path, _Memory] = {}

    def look(self, context: ServerContext, *, trends: bool = True) -> Glance:
        """Return the jobs that a server shows, as they were at most a second ago.

        Args:
            trends: Whether to read how they went, too, where that is not known; it takes longer.
        """
        home, only = context.home, context.settings.only
        with self._lock:
            memory = self._homes.setdefault(home.folder, _Memory())
        with memory.lock:
            if self._clock() - memory.at > _FRESH_FOR_S:
                memory.jobs, memory.at = context.hide_in(tuple(home.jobs())), self._clock()
                known = {job.name for job in memory.jobs}
                memory.trends = {k: v for k, v in memory.trends.items() if k in known}
            if trends:
                self._read_trends(home, memory)
            jobs = tuple(job for job in memory.jobs if only is None or job.name == only)
            return Glance(jobs, {name: trend for name, (_, trend) in memory.trends.items()})

    def _read_trends(self, home: FolderHome, memory: _Memory) -> None:
        now = self._clock()
        read_at = {name: at for name, (at, _) in memory.trends.items()}
        due = [job.name for job in memory.jobs if _is_due(job, read_at.get(job.name), now)]
        due.sort(key=lambda name: read_at.get(name, float("-inf")))
        for name in due[:_TRENDS_AT_ONCE]:
            memory.trends[name] = (now, _read_trend(home, name))


def _is_due(job: JobView, read_at: float | None, now: float) -> bool:
    lasts = _TREND_FRESH_FOR_S if job.is_alive else _ENDED_TREND_FRESH_FOR_S
    return read_at is None or now - read_at > lasts


def _read_trend(home: FolderHome, name: str) -> Trend:
    ends = datetime.now(UTC)
    begins = ends - _TREND_OF
    try:
        samples = home.samples(name, since=begins, points=_TREND_POINTS)
    except HeadgateError:
        # A row without its line is better than no row; the job's own page tells why.
        return Trend(begins, ends)
    return Trend(begins, ends, samples.at, samples.in_per_s)
