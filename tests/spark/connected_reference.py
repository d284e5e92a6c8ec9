"""A process of two connected streams, and the same in a few lines of plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headgate import Context, Flow, KeyedCoProcess, ListOf, MapOf, Timer, Value

DELAY = 40
KEYS = ("a", "b", "hot", "hot", "hot", "")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row of one side; `place` is its offset in its partition."""

    n: int
    side: str
    partition: int
    place: int
    key: str
    at: int
    bad: bool = False

    @property
    def sequence(self) -> tuple[bool, int]:
        """The partition that it is in, left ones first."""
        return self.side == "right", self.partition


@dataclass
class Made:
    key: str
    text: str


class Chain(KeyedCoProcess[Any, Any, Made]):
    """Says of each row what came before it, so that every change of the order shows."""

    last: Value[str]
    rows: ListOf[int]
    sides: MapOf[str, int]

    def on_left(self, row: Any, ctx: Context[Made]) -> None:
        self._take("left", row.n, ctx, is_bad=row.bad)

    def on_right(self, row: Any, ctx: Context[Made]) -> None:
        self._take("right", row.payload.n, ctx, is_bad=row.note == "bad")
        ctx.timers.at(row.at + DELAY)

    def on_timer(self, timer: Timer, ctx: Context[Made]) -> None:
        ctx.emit(Made(ctx.key, f"{timer.ms} behind {self.last.get()}"))

    def _take(self, side: str, n: int, ctx: Context[Made], *, is_bad: bool) -> None:
        before = self.last.get()
        self.last.set(f"{side} {n}")
        self.rows.append(n)
        self.sides[side] = self.sides.get(side, 0) + 1
        ctx.emit(Made(ctx.key, f"{n} behind {before}, {self.rows.tail(4)}, {self.sides[side]}"))
        if is_bad:
            raise ValueError("a bad row")


def chained(*, timed: bool) -> Flow:
    """Return a flow whose streams have other columns and other names for the key."""
    flow = Flow("chained")
    times = {"event_time": "at"} if timed else {}
    left = flow.stream("left", "n BIGINT, key STRING, at BIGINT, bad BOOLEAN", **times)
    columns = "note STRING, at BIGINT, id STRING, payload STRUCT<n: BIGINT>"
    right = flow.stream("right", columns, **times)
    both = left.key_by("key").connect(right.key_by("id"))
    both.process("c", Chain(), on_error="dead-letter").out.to("out")
    return flow


def drawn(draw: random.Random, many: int) -> list[list[Arrival]]:
    """Return the rows of two partitions of each side; times go back and forth, and repeat."""
    sequences = []
    for side in ("left", "right"):
        for partition in (0, 1):
            rows = []
            for place in range(many):
                n = 10_000 * (2 * (side == "right") + partition) + place
                at = max(1, 5 * place + draw.randint(-60, 60))
                key, bad = draw.choice(KEYS), draw.random() < 0.05
                rows.append(Arrival(n, side, partition, place, key, at, bad))
            sequences.append(rows)
    return sequences


def value_of(row: Arrival) -> dict[str, Any]:
    """Return the record of a row."""
    if row.side == "left":
        return {"n": row.n, "key": row.key, "at": row.at, "bad": row.bad}
    note = "bad" if row.bad else ""
    return {"note": note, "at": row.at, "id": row.key, "payload": {"n": row.n}}


def merged(rows: Iterable[Arrival]) -> list[Arrival]:
    """Return rows of one key in order: that partition is next whose next row is the earliest."""
    waiting: dict[tuple[bool, int], list[Arrival]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.place):
        waiting[row.sequence].append(row)
    out = []
    while waiting:
        first = min((rows[0] for rows in waiting.values()), key=lambda row: (row.at, row.sequence))
        out.append(waiting[first.sequence].pop(0))
        if not waiting[first.sequence]:
            del waiting[first.sequence]
    return out


@dataclass(slots=True)
class _Key:
    last: str | None = None
    rows: list[int] = field(default_factory=list)
    sides: dict[str, int] = field(default_factory=lambda: {"left": 0, "right": 0})


@dataclass(slots=True)
class ChainModel:
    """The process, batch by batch; timers are moments by key, with the watermark they wait for."""

    keys: dict[str, _Key] = field(default_factory=lambda: defaultdict(_Key))
    timers: dict[tuple[str, int], int] = field(default_factory=dict)
    letters: list[tuple[str, int]] = field(default_factory=list)

    def batch(self, rows: Iterable[Arrival], watermark: int) -> dict[str, list[str]]:
        """Return what each key emits, in order."""
        out: dict[str, list[str]] = defaultdict(list)
        by_key: dict[str, list[Arrival]] = defaultdict(list)
        for row in rows:
            by_key[row.key].append(row)
        for key, own in by_key.items():
            for row in merged(own):
                out[key] += self._take(row, watermark)
        due = sorted(timer for timer, from_ in self.timers.items() if from_ <= watermark)
        for key, at in sorted(due, key=lambda timer: timer[1]):
            del self.timers[key, at]
            out[key].append(f"{at} behind {self.keys[key].last}")
        return {key: texts for key, texts in out.items() if texts}

    def _take(self, row: Arrival, watermark: int) -> list[str]:
        if row.bad:
            self.letters.append((row.side, row.n))
            return []
        key = self.keys[row.key]
        before, key.last = key.last, f"{row.side} {row.n}"
        key.rows.append(row.n)
        key.sides[row.side] += 1
        if row.side == "right":
            # One at or below the watermark fires once that moves on.
            at = row.at + DELAY
            self.timers.setdefault((row.key, at), max(at, watermark + 1))
        return [f"{row.n} behind {before}, {key.rows[-4:]}, {key.sides[row.side]}"]
