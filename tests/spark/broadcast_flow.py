"""A flow with all kinds of broadcasts, and what plain Python makes of it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from broadcast_reference import Rules, labels

from headgate import BroadcastContext, BroadcastProcess, Flow, Timer, Value

JOB = "broadcasts"
HOUR = 3_600_000
BASE = 1_767_258_000_000
END = 10**14
CONDITIONS = {
    "price > 50": lambda event: event["price"] > 50,
    "price <= 50 AND user < 5": lambda event: event["price"] <= 50 and event["user"] < 5,
    "user % 2 = 0": lambda event: event["user"] % 2 == 0,
}
BAD = "no_such_column > 1"


@dataclass(frozen=True)
class Rule:
    id: int
    when: str
    label: str


@dataclass
class Order:
    n: int
    user: int
    price: int
    at: int


@dataclass
class Seen:
    """What a process says of an event, or of a timer, which is `n` -1."""

    n: int
    user: int
    total: int
    rules: str


def shown(rows: Mapping[int, Any]) -> str:
    return " ".join(f"{key}={rule.label}" for key, rule in rows.items())


class Counting(BroadcastProcess[Order, Rule, Seen]):
    """Counts the events of a user, and tells the rules of the moment."""

    total: Value[int]

    def on_event(self, event: Order, ctx: BroadcastContext[Rule, Seen]) -> None:
        self.total.set(self.total.get(0) + 1)
        ctx.emit(Seen(event.n, ctx.key, self.total.get(0), shown(ctx.broadcast)))
        ctx.timers.at(event.at + HOUR)

    def on_timer(self, timer: Timer, ctx: BroadcastContext[Rule, Seen]) -> None:  # noqa: ARG002
        ctx.emit(Seen(-1, ctx.key, self.total.get(0), shown(ctx.broadcast)))


class Telling(BroadcastProcess[Any, dict[str, Any], Seen]):
    """Has no key, and takes rules as dicts."""

    def on_event(self, event: Any, ctx: BroadcastContext[dict[str, Any], Seen]) -> None:
        assert ctx.key is None
        rule = ctx.broadcast.get(event.user)
        ctx.emit(Seen(event.n, event.user, len(ctx.broadcast), rule["label"] if rule else ""))


def broadcasts() -> Flow:
    flow = Flow(JOB)
    rules = flow.broadcast("rules", Rule, key="id")
    orders = flow.stream("orders", Order, event_time="at", out_of_orderness="1h")
    orders.label("marks", rules).out.select("n", "labels").to("marked")
    orders.key_by("user").with_broadcast("counts", rules, Counting()).out.to("counted")
    orders.with_broadcast("tells", rules, Telling()).out.to("told")
    return flow


def changes(draw: random.Random, many: int) -> list[dict[str, Any]]:
    """Return changes of rules: new ones, newer ones, deletions and bad ones."""
    made: list[dict[str, Any]] = []
    for number in range(many):
        key = draw.randint(0, 14)
        if draw.random() < 0.25:
            made.append({"id": key, "$deleted": True})
        else:
            when = draw.choice([*CONDITIONS, *CONDITIONS, BAD])
            made.append({"id": key, "when": when, "label": f"{key}-{number}-{draw.randint(0, 9)}"})
    return made


def orders(draw: random.Random, first: int, many: int) -> list[Order]:
    return [
        Order(n, draw.randint(0, 30), draw.randint(0, 100), BASE + n * 1000)
        for n in range(first, first + many)
    ]


class Model:
    """What the flow writes, if each event of a round sees the rules up to its round."""

    def __init__(self) -> None:
        self.rules = Rules()
        self.out: dict[str, list[Any]] = {"marked": [], "counted": [], "told": []}
        self.bad = 0
        self._totals: dict[int, int] = defaultdict(int)
        self._timers: set[tuple[int, int]] = set()

    def round(self, changes: Iterable[Mapping[str, Any]], events: Iterable[Order]) -> None:
        changes = list(changes)
        self.bad += sum(change.get("when") == BAD for change in changes)
        self.rules.apply(changes)
        for event in events:
            found = labels(self.rules, asdict(event), CONDITIONS)
            self.out["marked"].append({"n": event.n, "labels": found})
            self._totals[event.user] += 1
            self._timers.add((event.at + HOUR, event.user))
            self._count(event.n, event.user)
            rule = self.rules.rows.get(event.user)
            told = Seen(event.n, event.user, len(self.rules.rows), rule["label"] if rule else "")
            self.out["told"].append(asdict(told))

    def fire(self, watermark: int) -> None:
        """Fire the timers that a watermark reaches."""
        for due in sorted(due for due in self._timers if due[0] <= watermark):
            self._timers.discard(due)
            self._count(-1, due[1])

    def _count(self, n: int, user: int) -> None:
        rules = " ".join(f"{rule['id']}={rule['label']}" for rule in self.rules.ordered())
        self.out["counted"].append(asdict(Seen(n, user, self._totals[user], rules)))
