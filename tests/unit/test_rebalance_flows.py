"""Exchanges as a user reads them, and `rebalance` as a user writes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headgate import Flow, HeadgateError, Stream
from headgate.engine.plan.ends import count_tasks
from headgate.engine.plan.plan import plan_flow
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Rebalance
from headgate.jobs.views.graph import build_view

ROW = "id BIGINT NOT NULL, user BIGINT"


def spread() -> Graph:
    """Return a flow with rebalances before and behind an operator, and functions around them."""
    flow = Flow("spread")
    orders = flow.stream("orders", ROW)
    users = flow.table("users", "id BIGINT NOT NULL", key="id")
    first = orders.map("before", _same, schema=ROW).rebalance().map("slow", _same, schema=ROW)
    found = first.enrich("with-user", users, on="user", into="who")
    found.matched.select("id", "user").rebalance().filter(bool).to("matched")
    found.missing.to("missing")
    return flow.graph()


def _same(row: Any) -> Any:
    return row


def test_the_exchange_of_every_edge_is_in_the_text() -> None:
    text = Flow.from_graph(spread()).explain()
    assert "[rebalance]→ orders.rebalance-1: rebalance over all tasks" in text
    assert "[key_by user]→ with-user: enrich" in text
    assert "[key_by id]→ with-user\n" in text
    assert "[forward]→ slow: map by" in text


def test_the_exchange_of_every_edge_is_in_the_graph_with_its_records() -> None:
    graph = spread()
    ids = [node.id for node in graph.nodes if isinstance(node, Rebalance)]
    ports = {"orders": 9, "before": 9, ids[0]: 9, "slow": 9, "with-user.matched": 7, ids[1]: 7}
    view = build_view("spread", graph, {"ports": ports})
    edges = {(edge.source, edge.target): (edge.exchange, edge.records) for edge in view.edges}
    assert edges["orders", "before"] == ("forward", 9)
    assert edges["before", ids[0]] == ("rebalance", 9)
    assert edges[ids[0], "slow"] == ("forward", 9)
    assert edges["slow", "with-user"] == ("key_by user", 9)
    assert edges["users", "with-user"][0] == "key_by id"
    [node] = [node for node in view.nodes if node.id == ids[0]]
    assert (node.operator, node.detail) == ("rebalance", "rebalance over all tasks")
    assert (node.facts.records_in, node.facts.records_out) == (9, 9)


def test_functions_are_called_behind_the_step_that_feeds_them() -> None:
    graph = spread()
    made = plan_flow(graph, history={}, max_record=1)
    [first, second] = [node.id for node in graph.nodes if isinstance(node, Rebalance)]
    assert made.steps == (first, "with-user", second)
    assert made.operators == ("with-user",)
    stages = {call["id"]: call["stage"] for call in made.spec["calls"]}
    [filter_] = [name for name in stages if "filter" in name]
    assert stages == {"before": 0, "slow": 1, filter_: 3}
    kinds = [(step["kind"], step["id"]) for step in made.spec["operators"]]
    assert kinds == [("rebalance", first), ("enrich", "with-user"), ("rebalance", second)]
    addresses = [step["address"] for step in made.spec["operators"]]
    assert addresses == [5001, 1, 5003]


def test_as_many_tasks_write_as_there_are_partitions_of_state() -> None:
    flow = Flow("plain")
    flow.stream("orders", ROW).rebalance().to("out")
    assert count_tasks(plan_flow(flow.graph(), history={}, max_record=1), 7) == 7
    assert Graph.from_json(flow.graph().to_json()) == flow.graph()


def test_a_transform_behind_a_rebalance_is_refused() -> None:
    flow = Flow("plain")
    spread = flow.stream("orders", ROW).rebalance()
    with pytest.raises(HeadgateError) as caught:
        spread.transform("m:f")
    assert caught.value.code == "TRANSFORM_AFTER_STATE"
    assert "comes after rebalance 'orders.rebalance-1'" in caught.value.message


SPREAD: dict[str, tuple[Callable[[Stream], Stream], bool]] = {
    "as they come": (lambda rows: rows, False),
    "right behind it": (lambda rows: rows.rebalance(), True),
    "behind steps without state": (
        lambda rows: rows.rebalance().where("id > 1").map("same", _same, schema=ROW),
        True,
    ),
    "put in order by a key": (
        lambda rows: rows.rebalance().dedupe("once", by="id", within="1s").unique,
        False,
    ),
    "some of them": (
        lambda rows: rows.where("id > 1").rebalance().union(rows.where("id < 1")),
        False,
    ),
    "all of them": (lambda rows: rows.where("id > 1").rebalance().union(rows.rebalance()), True),
}


@pytest.mark.parametrize("name", SPREAD)
def test_a_label_spreads_rows_that_are_rebalanced_and_keeps_others_in_order(name: str) -> None:
    lead, spreads = SPREAD[name]
    flow = Flow("labels")
    rules = flow.broadcast("rules", "id INT, when STRING, label STRING", key="id")
    rows = flow.stream("orders", f"{ROW}, at BIGINT NOT NULL", event_time="at")
    lead(rows).label("marks", rules).out.to("out")
    spec = json.dumps(plan_flow(flow.graph(), history={}, max_record=1).spec)
    assert ('"spreads": true' in spec) is spreads
    assert ('"spreads": false' in spec) is not spreads
