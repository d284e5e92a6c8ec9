"""Processes in a test without Spark: `headgate.testing.Harness`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from process_model import made_kernel

from headgate import Context, HeadgateError, KeyedProcess, ListOf, MapOf, Timer, Value
from headgate.functions.calling.calls import FunctionFailed
from headgate.functions.calling.results import BadResult
from headgate.functions.processes.memory import Work
from headgate.testing import Harness


@dataclass
class Part:
    name: str
    sizes: list[int] = field(default_factory=list)


@dataclass
class Wide:
    id: int
    price: Decimal
    at: datetime
    day: date
    raw: bytes
    flag: bool
    parts: list[Part]
    tags: dict[str, float]
    part: Part | None = None


@dataclass
class Order:
    user: str
    price: float


@dataclass
class Alert:
    user: str
    text: str


class Keeper(KeyedProcess[Wide, Wide]):
    last: Value[Wide]
    every: ListOf[Wide]
    by_day: MapOf[date, Wide | None]
    times: MapOf[datetime, bytes]

    def on_event(self, row: Wide, ctx: Context[Wide]) -> None:
        self.last.set(row)
        self.every.append(row)
        self.by_day[row.day] = row
        self.times[row.at] = row.raw
        row.parts.append(Part("changed later"))
        last = self.last.get()
        assert last is not None
        assert last is not self.last.get()
        assert len(last.parts) == len(row.parts) - 1
        ctx.emit(last)


class Fraud(KeyedProcess[Order, Alert]):
    last: Value[float] = Value(ttl="1h")
    recent: ListOf[float]

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def on_event(self, order: Order, ctx: Context[Alert]) -> None:
        self.recent.append(order.price)
        ctx.timers.at(5_000)
        ctx.timers.after("10s")
        if order.price < 0:
            raise ValueError(f"a negative price: {order.price}")
        if order.price > self.limit:
            ctx.emit(Alert(ctx.key, f"{self.last.get(0.0)} {order.price} {ctx.time}"))
            ctx.side("slow").emit(Alert(ctx.key, "slow"))
        self.last.set(order.price)

    def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None:
        ctx.emit(Alert(ctx.key, f"{timer.is_event_time} {timer.time} {ctx.now} {ctx.watermark}"))


def wide(number: int) -> Wide:
    at = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2))) + timedelta(days=number)
    parts = [Part("a", [1, number]), Part("é", [])]
    price = Decimal(number) / 4
    return Wide(number, price, at, at.date(), b"\0", number > 1, parts, {"x": 0.5, "y": -0.0})


def test_values_of_all_types_come_back_as_they_were() -> None:
    harness = Harness(Keeper(), key="id")
    given = [wide(0), wide(1), wide(1)]
    for row in given:
        assert harness.send(row) == [row]
    assert harness.out == given
    state = harness.state(1)
    assert state["last"] == given[2]
    assert state["every"] == given[1:]
    assert state["by_day"] == {given[1].day: given[2]}
    assert state["times"] == {given[1].at: b"\0"}
    assert state["last"].at.utcoffset() == timedelta(0)


def test_a_process_sees_its_key_times_and_outputs() -> None:
    harness = Harness(Fraud(limit=10.0), key="user", sides=["slow"])
    assert harness.send(Order("ann", 5.0)) == []
    rows = harness.send({"user": "ann", "price": 11.0}, time=3_000)
    assert rows == [Alert("ann", "5.0 11.0 1970-01-01 00:00:03+00:00")]
    assert harness.side("slow") == [Alert("ann", "slow")]
    assert harness.state("ann") == {"last": 11.0, "recent": [5.0, 11.0]}
    assert [timer.is_event_time for timer in harness.timers("ann")] == [True, False]
    assert harness.state("bob") == {"last": None, "recent": []}
    with pytest.raises(KeyError, match="fast"):
        harness.side("fast")


def test_timers_fire_with_the_watermark_and_with_the_clock() -> None:
    harness = Harness(Fraud(limit=10.0), key="user")
    harness.send(Order("ann", 1.0))
    assert harness.advance_watermark(4_999) == []
    (row,) = harness.advance_watermark(5_000)
    assert row.text.startswith("True 1970-01-01 00:00:05")
    assert harness.advance_clock("9s") == []
    (row,) = harness.advance_clock(timedelta(seconds=3))
    assert "2026-01-01 00:00:10+00:00 2026-01-01 00:00:12+00:00" in row.text
    assert harness.timers("ann") == []


def test_state_expires_by_the_clock() -> None:
    harness = Harness(Fraud(limit=10.0), key="user")
    harness.send(Order("ann", 1.0))
    harness.advance_clock("59m59s")
    assert harness.state("ann")["last"] == 1.0
    harness.advance_clock("1s")
    assert harness.state("ann") == {"last": None, "recent": [1.0]}


def test_a_failure_leaves_no_trace() -> None:
    harness = Harness(Fraud(limit=10.0), key="user")
    with pytest.raises(ValueError, match="a negative price"):
        harness.send(Order("ann", -1.0))
    assert harness.state("ann") == {"last": None, "recent": []}
    assert harness.timers("ann") == []
    harness = Harness(Fraud(limit=10.0), key="user", on_error="dead-letter")
    harness.send(Order("ann", -1.0))
    assert harness.state("ann") == {"last": None, "recent": []}
    (letter,) = harness.dead_letters
    assert (letter.key, letter.event, letter.timer) == ("ann", Order("ann", -1.0), None)
    assert "ValueError: a negative price: -1.0 (test_process_harness.py:" in letter.text


def test_two_harnesses_do_not_share_state() -> None:
    process = Fraud(limit=1.0)
    one, two = Harness(process, key="user"), Harness(process, key="user")
    one.send(Order("ann", 0.5))
    two.send(Order("ann", 0.25))
    assert one.state("ann")["recent"] == [0.5]
    with pytest.raises(RuntimeError, match="works within on_event"):
        Fraud.last.get()


def wrong() -> Any:
    return ["b"]


class Doing(KeyedProcess[dict[str, Any], Alert]):
    number: Value[int]
    decimal: Value[Decimal]
    part: Value[Part]
    parts: ListOf[Part]
    counts: MapOf[str, float]

    def on_event(self, event: dict[str, Any], ctx: Context[Alert]) -> None:
        event["do"](self, ctx)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda p, _: p.number.set(1.5), "'number' must be int, got float: 1.5"),
        (lambda p, _: p.number.set(True), "'number' must be int, got bool: True"),
        (lambda p, _: p.number.set(None), "'number' must not be None"),
        (lambda p, _: p.number.set(2**63), "'number' must be an integer of 64 bits"),
        (lambda p, _: p.decimal.set(Decimal("1e-19")), "'decimal' must be a decimal with at most"),
        (lambda p, _: p.decimal.set(Decimal("NaN")), "'decimal' must be a finite decimal"),
        (
            lambda p, _: p.part.set(Part("a", wrong())),
            "'part.sizes' must be int, got str: 'b'",
        ),
        (lambda p, _: p.part.set({"name": "a"}), "'part' has no 'sizes'"),
        (lambda p, _: p.part.set(7), "'part' must be Part, got int: 7"),
        (lambda p, _: p.parts.extend([Part("a"), None]), "'parts' must not be None"),
        (lambda p, _: p.counts.__setitem__(1, 1.0), "'counts: key' must be str, got int: 1"),
        (lambda p, _: p.counts.__setitem__("\udc00", 1.0), "must be text of Unicode"),
        (lambda _, ctx: ctx.emit(Alert("a", 7)), "'text' must be str, got int: 7"),  # type: ignore[arg-type]
        (lambda _, ctx: ctx.emit({"user": "a"}), "the row has no 'text'"),
        (lambda _, ctx: ctx.emit("row"), "a row must be a dataclass, a dict or a row, got str"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is_set(do: Any, message: str) -> None:
    harness = Harness(Doing())
    with pytest.raises(BadResult) as error:
        harness.send({"do": do}, key="k")
    assert message in str(error.value)


def test_what_fits_in_another_form_is_taken() -> None:
    def do(process: Doing, ctx: Any) -> None:
        process.decimal.set(Decimal(7))
        process.part.set({"name": "a", "sizes": (1, 2)})  # type: ignore[arg-type]
        process.counts["x"] = 3
        ctx.emit({"user": "a", "text": "b", "more": 1})

    harness = Harness(Doing())
    assert harness.send({"do": do}, key="k") == [Alert("a", "b")]
    state = harness.state("k")
    assert state["part"] == Part("a", [1, 2])
    assert state["counts"] == {"x": 3.0}
    assert repr(state["counts"]["x"]) == "3.0"


def test_random_numbers_are_the_same_in_a_replay_and_differ_by_key() -> None:
    class Dice(KeyedProcess[dict[str, Any], Alert]):
        def on_event(self, _: dict[str, Any], ctx: Context[Alert]) -> None:
            ctx.emit(Alert(ctx.key, str(ctx.random.random())))

    def rolls() -> list[str]:
        harness = Harness(Dice())
        for key in "aab":
            harness.send({}, key=key)
        return [row.text for row in harness.out]

    assert rolls() == rolls()
    assert len(set(rolls())) == 3


class Big(KeyedProcess[Order, Alert]):
    items: ListOf[float]
    counts: MapOf[str, int]

    def on_event(self, order: Order, ctx: Context[Alert]) -> None:
        name = str(order.price)
        if order.user == "fill":
            self.items.extend(map(float, range(100_000)))
            for number in range(100_000):
                self.counts[str(number)] = number
        elif order.user == "write":
            self.items.append(1.0)
            self.counts[name] = 1
        else:
            found = self.items.tail(10), self.counts.get("77"), len(self.items), len(self.counts)
            ctx.emit(Alert("", str(found)))


def test_one_entry_of_a_large_list_or_map_needs_few_pages() -> None:
    kernel, _ = made_kernel(Big(), Order, Alert)
    state = kernel.state

    def call(user: str, price: float) -> tuple[int, list[Any]]:
        before = state.fetched
        made = kernel.call(
            [Work(b"k", ("k",), [(user, price)])], now=1, watermark=0, batch=1, phase=0
        )
        return state.fetched - before, [row for _, row in made.rows[0]]

    assert call("fill", 0.0)[0] == 0
    sizes = [len(page[0]) for (_, var, _), page in state.pages.items() if var == 1]
    assert sum(sizes) == 100_000
    assert max(sizes) < 100
    assert len([1 for _, var, _ in state.pages if var == 0]) == -(-100_000 // 64)
    for number in range(20):
        fetched, _ = call("write", float(number))
        # A page of the list, one of the map, and one that is split.
        assert fetched <= 3
        fetched, rows = call("read", 0.0)
        assert fetched <= 3
        assert f"77, {100_001 + number}, {100_001 + number})" in str(rows)


def test_a_process_that_is_not_deterministic_is_found() -> None:
    class Odd(KeyedProcess[Order, Alert]):
        def on_event(self, _: Order, ctx: Context[Alert]) -> None:
            ctx.emit(Alert("", str(random.random())))

    kernel, _ = made_kernel(Odd(), Order, Alert)
    with pytest.raises(FunctionFailed, match="gave other results") as error:
        kernel.call([Work(b"k", ("k",), [("a", 1.0)])], now=1, watermark=0, batch=1)
    assert error.value.code == "FUNCTION_NOT_DETERMINISTIC"


class Again(KeyedProcess[Order, Alert]):
    """Sets the timer that is due once more: before it fires, or while it does."""

    def on_event(self, _: Order, ctx: Context[Alert]) -> None:
        ctx.timers.after("0s")

    def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None:
        ctx.emit(Alert("", str(timer.ms)))


def test_a_timer_that_is_due_and_set_again_before_it_fires_fires_once() -> None:
    kernel, _ = made_kernel(Again(), Order, Alert)
    work = Work(b"k", ("k",), [("a", 1.0)], timers=[(1, 5000)])
    made = kernel.call([work], now=5000, watermark=0, batch=1)
    assert [row[1] for _, row in made.rows[0]] == ["5000"]
    assert kernel.state.entries.get(b"k", set()) == set()


def test_a_timer_may_be_at_any_time_that_a_datetime_has() -> None:
    class Far(KeyedProcess[Order, Alert]):
        def on_event(self, event: Order, ctx: Context[Alert]) -> None:  # noqa: ARG002
            ctx.timers.at(datetime.max)
            ctx.timers.at(datetime.min)

        def on_timer(self, timer: Timer, ctx: Context[Alert]) -> None:
            ctx.emit(Alert(ctx.key, str(timer.time)))

    harness = Harness(Far(), key="user")
    harness.send(Order("ann", 1.0))
    assert harness.advance_watermark(1) == [Alert("ann", "0001-01-01 00:00:00+00:00")]
    end = 253_402_300_799_999
    assert harness.advance_watermark(end - 1) == []
    assert harness.advance_watermark(end) == [Alert("ann", "9999-12-31 23:59:59.999000+00:00")]


def test_a_process_without_on_timer_has_no_timers() -> None:
    def do(_: Doing, ctx: Context[Alert]) -> None:
        ctx.timers.after("1s")

    with pytest.raises(RuntimeError, match="has no on_timer"):
        Harness(Doing()).send({"do": do}, key="k")


def test_a_harness_needs_the_type_of_the_rows() -> None:
    class Untyped(KeyedProcess[Any, Any]):
        def on_event(self, event: Any, ctx: Context[Any]) -> None:
            ctx.emit(Alert(event.user, "x"))

    with pytest.raises(HeadgateError, match="needs a dataclass"):
        Harness(Untyped())
    assert Harness(Untyped(), schema=Alert).send({"user": "a"}, key=1) == [Alert("a", "x")]


def test_the_harness_starts_at_a_clock_of_its_own() -> None:
    start = datetime(2030, 5, 1, tzinfo=UTC)
    assert Harness(Fraud(1.0), key="user", now=start).now == start
