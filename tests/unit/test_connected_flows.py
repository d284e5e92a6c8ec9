"""A process of two connected streams: declared, checked, shown, planned, and called in a test."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from headgate import (
    Context,
    Flow,
    Graph,
    HeadgateError,
    KeyedCoProcess,
    KeyedProcess,
    MapOf,
    Timer,
    Value,
)
from headgate.engine.plan.plan import plan_flow
from headgate.flow.drawing.explain import explain
from headgate.flow.graph.edges import edges_of
from headgate.flow.operators.nodes import CoProcess
from headgate.flow.state.changes import find_state_change
from headgate.flow.streams.outputs import Processed
from headgate.functions.declared import describe_process
from headgate.functions.stored import CoProcessCallback, load
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.way_back import find_way_back
from headgate.testing import Harness

ORDERS = "id BIGINT, price DOUBLE, at BIGINT, user STRUCT<id: STRING>"
PAYMENTS = "orderId BIGINT, paid DOUBLE, via STRING"


@dataclass
class Order:
    id: int
    price: float


@dataclass
class Payment:
    orderId: int
    paid: float


@dataclass
class Match:
    id: int
    text: str


class Matching(KeyedCoProcess[Order, Payment, Match]):
    """Pairs an order with its payments, whichever is first."""

    order: Value[Order]
    paid: Value[float]

    def on_left(self, order: Order, ctx: Context[Match]) -> None:
        self.order.set(order)
        if order.price < 0:
            raise ValueError("a negative price")
        self._tell(ctx)

    def on_right(self, payment: Payment, ctx: Context[Match]) -> None:
        self.paid.set(self.paid.get(0.0) + payment.paid)
        if payment.paid < 0:
            raise ValueError("a negative payment")
        self._tell(ctx)
        ctx.timers.after("1m")

    def on_timer(self, timer: Timer, ctx: Context[Match]) -> None:  # noqa: ARG002
        ctx.emit(Match(ctx.key, "time is over"))

    def _tell(self, ctx: Context[Match]) -> None:
        order, paid = self.order.get(), self.paid.get()
        if order is not None and paid is not None:
            ctx.emit(Match(ctx.key, f"{paid} of {order.price}"))


class Longer(Matching):
    """The same with one more state."""

    seen: MapOf[str, int]


class OfOne(KeyedProcess[Order, Match]):
    """A process of one stream with the same state."""

    order: Value[Order]
    paid: Value[float]

    def on_event(self, order: Order, ctx: Context[Match]) -> None:
        pass

    def on_timer(self, timer: Timer, ctx: Context[Match]) -> None:
        pass


def connected(
    function: Any = None, *, left: str = "id", right: str = "orderId", **options: Any
) -> tuple[Flow, Processed]:
    flow = Flow("shop")
    orders, payments = flow.stream("orders", ORDERS), flow.stream("payments", PAYMENTS)
    both = orders.key_by(left).connect(payments.key_by(right))
    return flow, both.process("match", function or Matching(), **options)


def graph(function: Any = None, **options: Any) -> Graph:
    flow, made = connected(function, **options)
    made.out.to("matches")
    return flow.graph()


def code_of(call: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        call()
    assert caught.value.hint
    return caught.value


# Declared.


def test_a_process_of_two_streams_has_the_columns_of_both() -> None:
    node = graph().node("match")
    assert isinstance(node, CoProcess)
    assert (node.key, node.right_key) == (("id",), ("orderId",))
    assert (node.columns, node.right_columns) == (("id", "price"), ("orderId", "paid"))
    assert [state.name for state in node.state] == ["order", "paid"]
    assert node.timers
    callback = load(base64.b64decode(node.function.code))
    assert isinstance(callback, CoProcessCallback)
    assert (callback.argument.make, callback.right.make) != (None, None)


def test_a_graph_with_connected_streams_round_trips() -> None:
    of = graph(on_error="dead-letter")
    assert Graph.from_json(of.to_json()) == of
    assert Flow.from_graph(of).graph() == of


def test_keys_that_are_expressions_are_computed_on_both_sides_of_one_stream() -> None:
    flow = Flow("shop")
    orders = flow.stream("orders", ORDERS)
    both = orders.key_by("id % 10 AS k").connect(orders.where("id > 5").key_by("id % 7 AS k"))
    both.process("match", Unnamed(), schema=Match).out.to("matches")
    node = flow.graph().node("match")
    assert isinstance(node, CoProcess)
    assert node.input != node.right
    assert (node.key, node.right_key) == (("k",), ("k",))


class Unnamed(KeyedCoProcess[Any, dict[str, Any], Any]):
    def on_left(self, row: Any, ctx: Context[Any]) -> None:
        ctx.emit(Match(ctx.key, f"left {row.n}"))

    def on_right(self, row: dict[str, Any], ctx: Context[Any]) -> None:
        ctx.emit(Match(ctx.key, f"right {row['n']}"))


# Refused.


def test_keys_that_cannot_be_equal_are_refused() -> None:
    error = code_of(lambda: connected(right="via"))
    assert error.code == "KEY_MISMATCH"
    assert "'id' of the left stream is BIGINT, and 'via' of the right one is STRING" in str(error)
    flow = Flow("shop")
    orders, payments = flow.stream("orders", ORDERS), flow.stream("payments", PAYMENTS)
    both = orders.key_by("id", "at").connect(payments.key_by("orderId"))
    error = code_of(lambda: both.process("match", Matching()))
    assert error.code == "KEY_MISMATCH"
    assert "has 2 columns, and that of its right stream 1" in str(error)


def test_only_keyed_streams_of_one_flow_are_connected() -> None:
    flow, other = Flow("shop"), Flow("other")
    orders, foreign = flow.stream("orders", ORDERS), other.stream("orders", ORDERS)
    for wrong, got in [
        (orders, "a Stream"),
        (foreign.key_by("id"), "one of another flow"),
        (None, "a NoneType"),
    ]:
        error = code_of(lambda: orders.key_by("id").connect(cast("Any", wrong)))  # noqa: B023
        assert error.code == "BAD_CONNECT"
        assert got in str(error)
    both = orders.key_by("id").connect(orders.key_by("id"))
    error = code_of(lambda: both.process("match", Unnamed(), schema=Match))
    assert error.code == "BAD_CONNECT"
    assert "are both 'orders'" in str(error)


def test_the_hints_lead_to_connected_streams() -> None:
    flow = Flow("shop")
    orders, payments = flow.stream("orders", ORDERS), flow.stream("payments", PAYMENTS)
    keyed: Any = orders.key_by("id")
    error = code_of(lambda: cast("Any", orders).connect(payments))
    assert ".key_by('id').connect(" in str(error.hint)
    error = code_of(lambda: keyed.connect(payments.key_by("orderId")).to("x"))
    assert "call process first" in str(error.hint)
    error = code_of(lambda: keyed.process("match", Matching()))
    assert error.code == "BAD_FUNCTION"
    assert ".connect(" in str(error.hint)


def test_a_process_of_one_stream_is_refused_for_two() -> None:
    for wrong, problem in [
        (OfOne(), "needs a KeyedCoProcess, got"),
        (Matching, "needs an object, got the class Matching"),
        (len, "needs a KeyedCoProcess, got"),
    ]:
        error = code_of(lambda: connected(wrong))  # noqa: B023
        assert error.code == "BAD_FUNCTION"
        assert problem in str(error)


def test_a_missing_method_or_column_is_named_with_its_side() -> None:
    class OnlyLeft(KeyedCoProcess[Order, Payment, Match]):
        def on_left(self, order: Order, ctx: Context[Match]) -> None:
            pass

    assert "has no on_right" in str(code_of(lambda: connected(OnlyLeft())))

    class Crossed(KeyedCoProcess[Order, Order, Match]):
        on_left = on_right = Matching.on_left

    error = code_of(lambda: connected(Crossed()))
    assert error.code == "UNKNOWN_COLUMN"

    class Wrong(KeyedCoProcess[Order, int, Match]):
        on_left = Matching.on_left

        def on_right(self, number: int, ctx: Context[Match]) -> None:
            pass

    assert code_of(lambda: connected(Wrong())).code == "BAD_FUNCTION"
    declared = describe_process(Unnamed())
    assert declared.event is Any
    assert declared.right == dict[str, Any]


# Shown and planned.


def test_explain_and_edges_show_both_inputs() -> None:
    of = graph()
    text = explain(of)
    assert "process with payments by test_connected_flows:Matching: order (value of STRUCT" in text
    assert "─[key_by id]→ match: process with payments" in text
    assert "─[key_by orderId]→ match\n" in text
    edges = {(str(edge.source), edge.by) for edge in edges_of(of) if edge.target == "match"}
    assert edges == {("orders", ("id",)), ("payments", ("orderId",))}


def test_the_plan_sends_each_side_to_its_address() -> None:
    spec = plan_flow(graph(), history={}, max_record=1).spec
    [operator] = spec["operators"]
    assert (operator["kind"], operator["address"], operator["rightAddress"]) == ("process", 1, 3001)
    assert operator["rightKey"] == [{"name": "orderId", "path": ["orderId"]}]
    assert operator["rightColumns"] == ["orderId", "paid"]
    steps = {source["id"]: source["route"][0] for source in spec["sources"]}
    assert {name: (step["address"], step["side"]) for name, step in steps.items()} == {
        "orders": (1, "left"),
        "payments": (3001, "right"),
    }
    assert {step["buckets"] for step in steps.values()} == {128}
    assert json.dumps(spec)


def test_state_goes_on_with_more_state_and_from_a_process_of_one_stream() -> None:
    before, now = graph(), graph(Longer())
    assert find_state_change(before, now, "match") is None
    lost = find_state_change(now, before, "match")
    assert lost is not None
    assert "seen was removed" in lost
    flow = Flow("shop")
    made = flow.stream("orders", ORDERS).key_by("id").process("match", OfOne())
    made.out.to("matches")
    assert find_state_change(flow.graph(), before, "match") is None


def test_a_dead_letter_goes_back_to_the_topic_of_its_side() -> None:
    of = graph(on_error="dead-letter")

    def way_back(topic: str) -> Any:
        letter = DeadLetter(
            id="",
            source="co-process 'match'",
            of_row=True,
            topic=topic,
            partition=0,
            offset=0,
            reason="FUNCTION_FAILED",
            detail="",
            at=None,
            record_at=None,
            size=0,
        )
        return find_way_back(of, letter)

    for topic in ("orders", "payments"):
        found = way_back(topic).topic
        assert found is not None
        assert found.name == topic
    assert "a timer failed" in way_back("").why_not


# In a test.


def test_the_harness_sends_to_either_side_and_undoes_what_fails() -> None:
    match = Harness(Matching(), key="id", right_key="orderId", on_error="dead-letter")
    assert match.send_left(Order(1, 9.0)) == []
    assert match.send_right(Payment(1, 4.0)) == [Match(1, "4.0 of 9.0")]
    assert match.send_left(Order(1, -9.0)) == []
    assert match.send_right(Payment(1, -1.0)) == []
    assert match.state(1) == {"order": Order(1, 9.0), "paid": 4.0}
    assert [(letter.side, letter.event) for letter in match.dead_letters] == [
        ("left", Order(1, -9.0)),
        ("right", Payment(1, -1.0)),
    ]
    assert match.advance_clock("1m") == [Match(1, "time is over")]
    assert match.send_right(Payment(2, 1.0)) == []
    assert match.state(2)["paid"] == 1.0


def test_the_harness_keeps_the_sides_apart_from_one_stream() -> None:
    match: Any = Harness(Matching(), key="id", right_key="orderId")
    with pytest.raises(TypeError, match="use send_left or send_right"):
        match.send(Order(1, 1.0))
    with pytest.raises(ValueError, match="a negative payment"):
        match.send_right(Payment(1, -1.0))
    assert match.state(1) == {"order": None, "paid": None}
    one: Any = Harness(OfOne(), key="id")
    with pytest.raises(TypeError, match="takes one stream: use send"):
        one.send_left(Order(1, 1.0))
