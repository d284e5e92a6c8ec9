"""Interval joins as a user writes them: what they make, and what is refused and how."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from headgate import Flow, HeadgateError
from headgate.engine.plan.plan import plan_flow
from headgate.flow.drawing.explain import explain
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Join, Port
from headgate.flow.state.changes import find_state_change, warn_of_lost_state
from headgate.flow.streams.stream import Stream
from headgate.jobs.audit.shape import shape_of
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.way_back import find_way_back, topics_of_operators
from headgate.jobs.runs.lineage import extend_history, has_portable_form

ORDER = "id BIGINT NOT NULL, customer STRING, at BIGINT NOT NULL"
PAYMENT = "id BIGINT NOT NULL, orderId INT, amount DOUBLE, at BIGINT NOT NULL"


def streams(*, left: str = ORDER, right: str = PAYMENT, **more: Any) -> tuple[Flow, Stream, Stream]:
    flow = Flow("shop")
    times: dict[str, Any] = {"event_time": "at", **more}
    return flow, flow.stream("orders", left, **times), flow.stream("payments", right, **times)


def paid(**more: Any) -> Graph:
    columns = {name: more.pop(name) for name in ("left", "right") if name in more}
    flow, orders, payments = streams(**columns)
    given: dict[str, Any] = {"on": "id", "right_on": "orderId", "within": "15m", **more}
    orders.join("paid", payments, **given).matched.to("paid-orders")
    return flow.graph()


def node_of(graph: Graph) -> Join:
    node = graph.node("paid")
    assert isinstance(node, Join)
    return node


def refused(code: str, act: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        act()
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


def test_a_join_has_four_outputs_with_the_columns_of_its_sides() -> None:
    graph = paid(into="payment")
    assert graph.schema_of(Port("paid", "matched")).names == (*("id", "customer", "at", "payment"),)
    assert graph.schema_of(Port("paid", "matched")).find("payment.amount")
    assert graph.schema_of(Port("paid", "left_only")) == graph.schema_of(Port("orders", "out"))
    assert graph.schema_of(Port("paid", "right_only")) == graph.schema_of(Port("payments", "out"))
    late = graph.schema_of(Port("paid", "late"))
    assert late.names == ("side", "left", "right")
    assert late.find("left.customer")
    assert late.find("right.orderId")
    unused = {str(port) for port in graph.unused_outputs()}
    assert unused == {"paid.left_only", "paid.right_only", "paid.late"}


def test_bounds_are_symmetric_or_each_on_its_own() -> None:
    minute = timedelta(minutes=1)
    bounds: dict[tuple[timedelta, timedelta], dict[str, Any]] = {
        (15 * minute, 15 * minute): {},
        (minute, timedelta(0)): {"within": None, "before": "1m"},
        (timedelta(0), 2 * minute): {"within": None, "after": 2 * minute},
        (minute, 2 * minute): {"within": None, "before": "1m", "after": "2m"},
        (timedelta(0), timedelta(0)): {"within": "0s"},
    }
    for wanted, given in bounds.items():
        node = node_of(paid(**given))
        assert (node.before, node.after) == wanted


def test_a_graph_with_a_join_round_trips_through_json() -> None:
    graph = paid(on=["id", "at"], right_on=["orderId", "at"], before="1m", within=None)
    assert Graph.from_json(graph.to_json()) == graph


def with_table() -> object:
    flow, orders, _ = streams()
    table = flow.table("users", "id BIGINT NOT NULL", key="id")
    return orders.join("x", cast("Stream", table), on="id", within="1m")


def untimed() -> object:
    flow = Flow("shop")
    left = flow.stream("orders", ORDER, event_time="at")
    return left.join("x", flow.stream("payments", PAYMENT), on="id", within="1m")


def itself() -> object:
    _, orders, _ = streams()
    return orders.join("x", orders, on="id", within="1m")


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda: paid(within=None), "BAD_JOIN"),
        (lambda: paid(before="1m"), "BAD_JOIN"),
        (lambda: paid(within="15m", after="0s"), "BAD_JOIN"),
        (with_table, "BAD_JOIN"),
        (itself, "BAD_JOIN"),
        (lambda: streams()[1].join("x", streams()[2], on="id", within="1m"), "BAD_JOIN"),
        (untimed, "EVENT_TIME_MISSING"),
        (lambda: paid(within=timedelta(seconds=-1)), "BAD_DURATION"),
        (lambda: paid(within=timedelta(microseconds=1500)), "BAD_DURATION"),
        (lambda: paid(on=()), "KEY_MISMATCH"),
        (lambda: paid(on=["id", "at"]), "KEY_MISMATCH"),
        (lambda: paid(on="customer"), "KEY_MISMATCH"),
        (lambda: paid(on="nobody"), "UNKNOWN_COLUMN"),
        (lambda: paid(right_on="nobody"), "UNKNOWN_COLUMN"),
        (lambda: paid(right_on="amount"), "KEY_TYPE"),
        (lambda: paid(into="Customer"), "DUPLICATE_COLUMN"),
    ],
)
def test_what_cannot_be_is_refused_with_a_next_step(act: Callable[[], object], code: str) -> None:
    refused(code, act)


def test_a_fourth_operator_that_multiplies_rows_is_refused() -> None:
    _, stream, other = streams(right=ORDER)
    for number in range(3):
        stream = stream.join(f"j{number}", other, on="id", within="1m", into=f"o{number}").matched
    refused("BAD_FUNCTION", lambda: stream.join("j3", other, on="id", within="1m", into="o3"))


def test_the_plan_gives_each_side_an_address() -> None:
    plan = plan_flow(paid(), history={}, max_record=1000)
    [operator] = plan.spec["operators"]
    assert (operator["address"], operator["rightAddress"]) == (1, 3001)
    routes = {source["id"]: source["route"] for source in plan.spec["sources"]}
    assert [(step["address"], step["on"]) for step in routes["orders"]] == [(1, [["id"]])]
    assert [(step["address"], step["on"]) for step in routes["payments"]] == [(3001, [["orderId"]])]
    assert {stream.id for stream in plan.timed} == {"orders", "payments"}


def test_a_join_is_explained_once_with_both_exchanges() -> None:
    text = explain(paid(within=None, before="1m", after="30m"))
    line = "paid: join with payments from 1m before to 30m after into right"
    assert text.count(line) == 1
    assert "[key_by id]→ paid: join" in text
    assert "[key_by orderId]→ paid\n" in text


def test_columns_may_be_added_and_not_changed() -> None:
    old = paid()
    assert find_state_change(old, paid(within="2h"), "paid") is None
    assert find_state_change(old, paid(right=f"{PAYMENT}, note STRING"), "paid") is None
    changed = paid(right=PAYMENT.replace("DOUBLE", "FLOAT"))
    change = find_state_change(old, changed, "paid")
    assert change is not None
    assert "right: amount changed its type from DOUBLE to FLOAT" in change
    assert "by id (integer)" in str(find_state_change(old, paid(on="at"), "paid"))
    history = extend_history(extend_history({}, old), paid(right=f"{PAYMENT}, note STRING"))
    assert [schema.names for schema in history["paid"]] == [("left", "right")] * 2


def test_a_join_that_starts_empty_is_told_with_what_it_loses() -> None:
    graph = paid()
    assert not has_portable_form(graph)
    [warning] = warn_of_lost_state(graph, graph, dropped=["paid"], empty=["paid"])
    assert "rows that wait for a match are gone" in warning


def test_an_audit_knows_that_a_join_makes_rows_of_pairs() -> None:
    shape = shape_of(paid(), "payments", shows_places=["paid-orders"], dead_letters_show=True)
    assert "join 'paid' makes rows of pairs of records" in shape.unseen
    assert "rows of 'paid.late' are counted, but not written" in shape.unseen
    assert shape.outputs == ("paid-orders",)
    assert shape.group("paid-orders") is None


def letter(source: str) -> DeadLetter:
    return DeadLetter(
        id="0:0",
        source=source,
        of_row=True,
        topic="payments",
        partition=0,
        offset=0,
        reason="EXPRESSION_FAILED",
        detail="",
        at=None,
        record_at=None,
        size=0,
    )


def test_only_late_rows_of_a_join_can_be_sent_again() -> None:
    flow, orders, payments = streams()
    joined = orders.join("paid", payments, on="id", within="1m")
    joined.matched.with_columns(x="1 / 0").to("pairs")
    joined.late.with_columns(y="1 / 0").to("late")
    graph = flow.graph()
    assert "join 'paid'" not in topics_of_operators(graph)

    def way(source: str) -> tuple[str | None, str]:
        found = find_way_back(graph, letter(source))
        return found.topic.name if found.topic else None, found.why_not

    pairs = way("with-columns 'paid.matched.with-columns-1'")
    assert pairs == (None, "join 'paid' has kept its record, and may have made other rows of it")
    assert way("with-columns 'paid.late.with-columns-1'") == ("payments", "")
