"""Windows and dedupe in plain Python: what comes out of batches whose watermarks are known.

Nothing here is clever: a window is a list of events, and every figure is counted anew from it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the model's stream; times are epoch milliseconds.

    Attributes:
        n: Its place in the stream; no two have the same.
        by: What dedupe tells events apart by.
    """

    n: int
    key: str
    at: int
    v: int | None = None
    x: float | None = None
    s: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one batch brought, in the order of its places, its watermark, and the time of day."""

    watermark: int
    events: tuple[Event, ...]
    clock: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """A window operator.

    Attributes:
        size: Of a window; for sessions the gap.
        every: When the next one begins; 0 for sessions.
        early_n: A result at each so manieth event; 0 for none.
        early_ms: A result at each multiple of this that the watermark reaches; 0 for none.
        early_clock: A result after so long on the clock; 0 for none.
        keyed: Whether each key has windows of its own.
    """

    size: int
    every: int
    lateness: int = 0
    early_n: int = 0
    early_ms: int = 0
    early_clock: int = 0
    keyed: bool = True


@dataclass(slots=True, eq=False)
class Held:
    """A window that stands.

    Attributes:
        told_at: When on the clock it told something for the last time, or began.
        told: How many events its last row was about.
        due: The next multiple that the first event since its last row found; None without one.
        closed: Whether its final row was written.
        largest: How many events the largest had of those it was joined from with its newest.
    """

    start: int
    end: int
    told_at: int
    events: list[Event] = field(default_factory=list)
    told: int = 0
    due: int | None = None
    closed: bool = False
    largest: int | None = None


class WindowModel:
    """One window operator, batch by batch."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._held: defaultdict[str, list[Held]] = defaultdict(list)
        self._now = Batch(0, ())
        self._moved = False

    def batch(self, batch: Batch) -> tuple[list[Row], list[int]]:
        """Return the rows of `updates` and the late events."""
        self._moved = batch.watermark > self._now.watermark
        self._now = batch
        rows: list[Row] = []
        late: list[int] = []
        touched: dict[int, tuple[str, Held]] = {}
        for event in batch.events:
            key = event.key if self._shape.keyed else ""
            windows = self._windows(key, event.at)
            if not windows:
                late.append(event.n)
            for window in windows:
                window.events.append(event)
                touched[id(window)] = (key, window)
                rows += self._at_event(key, window)
        for key, window in touched.values():
            # What has become another window since tells nothing any more.
            rows += self._at_end_of_call(key, window) if window in self._held[key] else []
        for key, windows in self._held.items():
            for window in windows:
                rows += self._at_watermark(key, window)
            windows[:] = [each for each in windows if not self._is_over(each.end)]
        return rows, late

    def _is_over(self, end: int) -> bool:
        return end + self._shape.lateness <= self._now.watermark

    def _windows(self, key: str, at: int) -> list[Held]:
        """Return the windows that take an event, made or merged where need be."""
        if not self._shape.every:
            return self._session(key, at)
        size, every = self._shape.size, self._shape.every
        last = at - at % every
        starts = [start for start in range(last, at - size, -every) if start + size > at]
        found = []
        for start in starts:
            if self._is_over(start + size):
                continue
            known = next((each for each in self._held[key] if each.start == start), None)
            if known is None:
                known = Held(start, start + size, self._now.clock)
                self._held[key].append(known)
            found.append(known)
        return found

    def _session(self, key: str, at: int) -> list[Held]:
        """Return the session that an event goes on with, or joins out of several, or begins."""
        end, all_ = at + self._shape.size, self._held[key]
        touched = [
            each
            for each in all_
            if not self._is_over(each.end) and each.start <= end and at <= each.end
        ]
        if not touched:
            if self._is_over(end):
                return []
            all_.append(Held(at, end, self._now.clock))
            return [all_[-1]]
        start = min([at, *(each.start for each in touched)])
        end = max([end, *(each.end for each in touched)])
        if (start, end) == (touched[0].start, touched[0].end):
            return [touched[0]]
        # A session that has grown is another one, with a final row of its own.
        joined = Held(
            start,
            end,
            min(each.told_at for each in touched),
            [event for each in touched for event in each.events],
            told=sum(each.told for each in touched),
            due=min((each.due for each in touched if each.due is not None), default=None),
            largest=max(len(each.events) for each in touched),
        )
        all_[all_.index(touched[0])] = joined
        self._held[key] = [each for each in all_ if each not in touched]
        return [joined]

    def _at_event(self, key: str, window: Held) -> list[Row]:
        if window.closed or window.end <= self._now.watermark:
            return []
        if self._shape.early_ms and window.due is None:
            window.due = (self._now.watermark // self._shape.early_ms + 1) * self._shape.early_ms
        after = len(window.events)
        before = after - 1 if window.largest is None else window.largest
        window.largest = None
        if not self._shape.early_n or after // self._shape.early_n == before // self._shape.early_n:
            return []
        return [self._row(key, window, partial=True)]

    def _at_end_of_call(self, key: str, window: Held) -> list[Row]:
        if window.closed:
            return [self._row(key, window, correction=True)]
        if window.end <= self._now.watermark or not self._is_due_by_clock(window):
            return []
        return [self._row(key, window, partial=True)]

    def _at_watermark(self, key: str, window: Held) -> list[Row]:
        if window.closed:
            return []
        if window.end <= self._now.watermark:
            window.closed = True
            return [self._row(key, window)]
        due = window.due is not None and window.due <= self._now.watermark
        if not due and not (self._moved and self._is_due_by_clock(window)):
            return []
        return [self._row(key, window, partial=True)]

    def _is_due_by_clock(self, window: Held) -> bool:
        is_new = len(window.events) > window.told
        every = self._shape.early_clock
        return is_new and every > 0 and self._now.clock - window.told_at >= every

    def _row(
        self, key: str, window: Held, *, partial: bool = False, correction: bool = False
    ) -> Row:
        window.told, window.told_at, window.due = len(window.events), self._now.clock, None
        window.due = None
        return {
            **({"key": key} if self._shape.keyed else {}),
            "window_start": window.start,
            "window_end": window.end,
            **{name: figure(window.events) for name, figure in FIGURES.items()},
            "partial": partial,
            "correction": correction,
        }


def _values(events: Iterable[Event], column: str) -> list[Any]:
    found = (getattr(event, column) for event in events)
    return [value for value in found if value is not None]


def _in_time(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.at, event.n))


def _whole(values: Sequence[int]) -> int | None:
    """Return the sum, if there is one and it fits 64 bits."""
    return sum(values) if values and -(2**63) <= sum(values) < 2**63 else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# By the names the flow gives them; see `aggregated` beside the flow.
FIGURES: dict[str, Callable[[list[Event]], Any]] = {
    "hits": len,
    "some": lambda events: len(_values(events, "v")),
    "total": lambda events: _whole(_values(events, "v")),
    "mass": lambda events: sum(_values(events, "x")) if _values(events, "x") else None,
    "low": lambda events: min(_values(events, "s"), key=str.encode, default=None),
    "high": lambda events: max(_values(events, "v"), default=None),
    "mean": lambda events: _mean(_values(events, "x")),
    "oldest": lambda events: next(iter(_values(_in_time(events), "s")), None),
    "newest": lambda events: next(iter(_values(reversed(_in_time(events)), "v")), None),
    "kinds": lambda events: len(set(_values(events, "v"))),
    "seen": lambda events: [event.n for event in events][:5],
}


class DedupeModel:
    """One dedupe operator, batch by batch; it never forgets a time."""

    def __init__(self, within: int) -> None:
        self._within = within
        self._times: defaultdict[str, list[int]] = defaultdict(list)

    def times_after(self, moment: int) -> set[tuple[str, int]]:
        """Return the times behind a moment of every key."""
        return {(key, time) for key, all_ in self._times.items() for time in all_ if time > moment}

    def batch(self, batch: Batch) -> dict[str, list[int]]:
        """Return the events of each output."""
        out: dict[str, list[int]] = {"unique": [], "repeated": [], "late": []}
        for event in _in_time(batch.events):
            times = self._times[event.by]
            if event.at + self._within <= batch.watermark:
                out["late"].append(event.n)
            elif any(abs(event.at - time) < self._within for time in times):
                out["repeated"].append(event.n)
            else:
                times.append(event.at)
                out["unique"].append(event.n)
        return out
