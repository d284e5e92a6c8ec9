"""Broadcasts in flows: what is declared, checked, stored and shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from headgate import (
    BroadcastContext,
    BroadcastProcess,
    Context,
    Flow,
    Graph,
    HeadgateError,
    KeyedProcess,
    Timer,
    Value,
)
from headgate.engine.plan.plan import plan_flow
from headgate.flow import Exchange, Port, edges_of, find_state_change
from headgate.testing import Harness


@dataclass(frozen=True)
class Rule:
    id: int
    when: str
    label: str


@dataclass
class Order:
    id: int
    user: int


@dataclass
class Priced:
    id: int
    rules: list[int]


class Apply(BroadcastProcess[Order, Rule, Priced]):
    def on_event(self, event: Order, ctx: BroadcastContext[Rule, Priced]) -> None:
        ctx.emit(Priced(event.id, list(ctx.broadcast)))


class Counted(BroadcastProcess[Order, dict[str, Any], Priced]):
    total: Value[int]

    def on_event(self, event: Order, ctx: BroadcastContext[dict[str, Any], Priced]) -> None:
        self.total.set(self.total.get(0) + 1)
        if event.id < 0:
            raise ValueError("negative")
        ctx.timers.after("10s")

    def on_timer(self, timer: Timer, ctx: BroadcastContext[dict[str, Any], Priced]) -> None:  # noqa: ARG002
        rules = [rule["id"] for rule in ctx.broadcast.values()]
        ctx.emit(Priced(self.total.get(0), rules))


class Keyed(KeyedProcess[Order, Priced]):
    def on_event(self, event: Order, ctx: Context[Priced]) -> None:
        ctx.emit(Priced(event.id, []))


def flow() -> Flow:
    made = Flow("pricing")
    rules = made.broadcast("rules", Rule, key="id")
    orders = made.stream("orders", Order)
    labelled = orders.label("marks", rules, into="found").out
    labelled.key_by("user").with_broadcast("counts", rules, Counted()).out.to("counted")
    labelled.with_broadcast("apply", rules, Apply()).out.to("priced")
    return made


def test_a_flow_with_broadcasts_round_trips_through_json() -> None:
    graph = flow().graph()
    assert Graph.from_json(graph.to_json()) == graph
    assert graph.schema_of(Port("marks", "out")).names == ("id", "user", "found")


def test_edges_show_that_rules_go_to_every_task() -> None:
    edges = {(str(e.source), e.target): e.exchange for e in edges_of(flow().graph())}
    assert edges["rules", "marks"] is edges["rules", "apply"] is Exchange.BROADCAST
    assert edges["orders", "marks"] is Exchange.REBALANCE
    assert edges["marks", "counts"] is Exchange.KEY_BY
    assert "[broadcast]→ marks" in flow().explain()


def test_each_operator_is_told_the_table_and_the_parallelism() -> None:
    spec = plan_flow(flow().graph(), history={}, max_record=1, parallelism=7).spec
    assert spec["parallelism"] == 7
    assert [operator["table"] for operator in spec["operators"]] == ["rules"] * 3


def test_state_of_other_rules_does_not_fit() -> None:
    other = Flow("pricing")
    rules = other.broadcast("others", Rule, key="id")
    orders = other.stream("orders", Order)
    orders.label("marks", rules).out.to("found")
    orders.key_by("user").with_broadcast("counts", rules, Counted()).out.to("counted")
    for uid in ("marks", "counts"):
        change = find_state_change(flow().graph(), other.graph(), uid)
        assert change is not None
        assert "'rules'" in change
        assert "'others'" in change


def refusal(build: Any) -> HeadgateError:
    made = Flow("pricing")
    rules = made.broadcast("rules", Rule, key="id")
    orders = made.stream("orders", Order)
    with pytest.raises(HeadgateError) as caught:
        build(made, orders, rules)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("build", "code", "words"),
    [
        (lambda f, o, _: o.label("l", f.table("t", Rule, key="id")), "TABLE_FOREIGN", "broadcast"),
        (lambda _, o, r: o.label("l", r, when="no"), "UNKNOWN_COLUMN", "'no'"),
        (lambda _, o, r: o.label("l", r, when="id"), "BAD_EXPRESSION", "must be a string"),
        (lambda _, o, r: o.label("l", r, into="user"), "DUPLICATE_COLUMN", "'user'"),
        (lambda _, o, r: o.enrich("e", r, on="id", into="x"), "TABLE_FOREIGN", "not a table"),
        (lambda _, o, r: o.with_broadcast("a", r, Counted()), "KEY_MISMATCH", "no key"),
        (lambda _, o, r: o.with_broadcast("a", r, Keyed()), "BAD_FUNCTION", "KeyedProcess"),
        (
            lambda _, o, __: o.key_by("id").process("a", Apply()),
            "BAD_FUNCTION",
            "needs a broadcast",
        ),
        (lambda _, o, r: o.with_broadcast("a", r, Apply), "BAD_FUNCTION", "got the class"),
        (lambda _, __, r: r.to("x"), "NO_SUCH_METHOD", "'to'"),
    ],
)
def test_what_does_not_fit_is_refused(build: Any, code: str, words: str) -> None:
    error = refusal(build)
    assert error.code == code
    assert words in error.message


def test_the_harness_shows_rules_in_order_of_their_keys() -> None:
    harness = Harness(Apply(), broadcast={3: Rule(3, "", "c"), 1: Rule(1, "", "a")})
    assert harness.send(Order(7, 1)) == [Priced(7, [1, 3])]
    harness.broadcast[2] = Rule(2, "", "b")
    del harness.broadcast[3]
    assert harness.send(Order(8, 1)) == [Priced(8, [1, 2])]


def test_the_harness_fires_timers_that_see_the_rules() -> None:
    harness = Harness(Counted(), key="user", on_error="dead-letter", broadcast={1: {"id": 1}})
    harness.send(Order(7, 5))
    harness.send(Order(-1, 5))
    harness.broadcast = {2: {"id": 2}}
    assert harness.advance_clock("10s") == [Priced(1, [2])]
    assert [letter.key for letter in harness.dead_letters] == [5]


def test_a_process_without_a_broadcast_is_not_given_one() -> None:
    with pytest.raises(HeadgateError, match="sees no broadcast"):
        Harness(Keyed(), key="user", broadcast={1: Rule(1, "", "a")})
