"""A keyed function with every kind of state, and the same in a few lines of plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate import Context, Flow, KeyedProcess, ListOf, MapOf, Timer, Value

MINUTE = 60_000
BEGIN = 1_767_258_000_000
BAD = 13

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """An event of a key; no two have the same time."""

    n: int
    key: int
    at: int
    v: int


@dataclass
class Summary:
    """What is known of a key; mutable, so that copies matter."""

    total: int
    largest: Event | None


@dataclass(frozen=True)
class Told:
    """What the function says of each event."""

    n: int
    key: int
    total: int
    largest: int
    tail: list[int]
    times: int
    kinds: int


class Everything(KeyedProcess[Event, Told]):
    """Uses all that there is; what it says depends on the events of a key and their order alone."""

    summary: Value[Summary]
    values: ListOf[int]
    times: MapOf[str, int]
    kept: Value[int] = Value(ttl="30d")

    def on_event(self, event: Event, ctx: Context[Told]) -> None:
        """Tell what is known of the key."""
        summary = self.summary.get() or Summary(0, None)
        summary.total += event.v
        if summary.largest is None or event.v > summary.largest.v:
            summary.largest = event
        self.summary.set(summary)
        # What is done to a copy is lost.
        summary.total = -1
        self.values.append(event.v)
        name = f"v{event.v}"
        self.times[name] = self.times.get(name, 0) + 1
        self.kept.set(self.kept.get(0) + 1)
        if event.n % 7 == 0:
            self.times.pop(name)
        ctx.timers.at(event.at + MINUTE)
        if event.n % 5 == 0:
            ctx.timers.cancel(ctx.timers.at(event.at + MINUTE))
        if event.v == BAD:
            ctx.emit(Told(-1, 0, 0, 0, [], 0, 0))
            raise ValueError("an unlucky number")
        assert ctx.key == event.key
        now = self.summary.get()
        assert now is not None
        assert now.largest is not None
        assert self.kept.get() == len(self.values)
        told = Told(
            event.n,
            event.key,
            now.total,
            now.largest.n,
            list(self.values.tail(3)),
            self.times.get(name, 0),
            len(self.times),
        )
        ctx.emit(told)
        if event.v > 90:
            ctx.side("large").emit(event)

    def on_timer(self, timer: Timer, ctx: Context[Told]) -> None:
        """Tell that the time of an event has come."""
        ctx.side("timers").emit({"key": ctx.key, "at": timer.ms})


def everything(name: str = "everything") -> Flow:
    """Return the flow."""
    flow = Flow(name)
    events = flow.stream("events", Event, event_time="at", out_of_orderness="10s")
    made = events.key_by("key").process("all", Everything(), on_error="dead-letter")
    made.out.to("told")
    made.side("large", schema=Event).to("large")
    made.side("timers", schema="key BIGINT, at BIGINT").to("timers")
    return flow


def drawn(seed: int, count: int, *, keys: int = 20, first: int = 0) -> list[Event]:
    """Return events; some keys have many more than others."""
    draw = random.Random(f"{seed}-{first}")
    return [
        Event(n, int(draw.random() ** 3 * keys), BEGIN + n * 1000, draw.randint(0, 99))
        for n in range(first, first + count)
    ]


@dataclass
class Expected:
    """What all events together give."""

    told: list[Row]
    large: list[Row]
    timers: list[Row]
    letters: list[int]


def expected(events: Iterable[Event]) -> Expected:
    """Return what plain Python makes of events, in their order."""
    out = Expected([], [], [], [])
    values: dict[int, list[int]] = defaultdict(list)
    totals: dict[int, int] = defaultdict(int)
    largest: dict[int, Event] = {}
    times: dict[int, dict[int, int]] = defaultdict(dict)
    for event in events:
        if event.v == BAD:
            out.letters.append(event.n)
            continue
        mine, seen = values[event.key], times[event.key]
        mine.append(event.v)
        totals[event.key] += event.v
        if event.key not in largest or event.v > largest[event.key].v:
            largest[event.key] = event
        seen[event.v] = seen.get(event.v, 0) + 1
        if event.n % 7 == 0:
            del seen[event.v]
        out.told.append(
            {
                "n": event.n,
                "key": event.key,
                "total": totals[event.key],
                "largest": largest[event.key].n,
                "tail": mine[-3:],
                "times": seen.get(event.v, 0),
                "kinds": len(seen),
            }
        )
        if event.v > 90:
            out.large.append({"n": event.n, "key": event.key, "at": event.at, "v": event.v})
        if event.n % 5:
            out.timers.append({"key": event.key, "at": event.at + MINUTE})
    return out
