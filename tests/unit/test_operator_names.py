"""Names of operators: shown to people, and part of nothing that state depends on."""

from __future__ import annotations

from typing import Any

import pytest

from headgate import Flow, HeadgateError
from headgate._codec import decode, encode
from headgate.connectors.logs import bind, parse_log
from headgate.engine.plan.plan import plan_flow
from headgate.flow.graph.graph import Graph
from headgate.flow.state.changes import find_state_change
from headgate.functions.keyed import KeyedProcess
from headgate.jobs.views.graph import GraphView, build_view
from headgate.windows import count, tumbling

ROW = "id BIGINT NOT NULL, user BIGINT, at BIGINT NOT NULL"


class Nothing(KeyedProcess[Any, Any]):
    def on_event(self, event: Any, ctx: Any) -> None:
        pass


async def _locate(row: Any) -> Any:
    return row


def shop(*, suffix: str = "", named: bool = True) -> Graph:
    """Return a flow with every operator that can have a name."""

    def name(text: str) -> str | None:
        return f"{text}{suffix}" if named else None

    flow = Flow("shop")
    orders = flow.stream("orders", ROW, event_time="at")
    users = flow.table("users", "id BIGINT NOT NULL", key="id")
    clean = orders.map("clean", lambda row: row, schema=ROW, name=name("Clean up"))
    clean = clean.flat_map("split", lambda row: [row], schema=ROW, name=name("Split"))
    clean = clean.filter(lambda row: row.id, name=name("Real ones"))
    clean = clean.map_batches("score", lambda rows: rows, name=name("Score"))
    clean = clean.call("geo", _locate, schema=ROW, name=name("Find the place")).ok
    once = clean.dedupe("once", by="id", within="1h", name=name("First of each")).unique
    found = once.enrich("with-user", users, on="user", into="who", name=name("Match users"))
    found.matched.to("matched")
    joined = once.join("pairs", orders, on="id", within="1m", name=name("Pair up"))
    joined.matched.to("pairs-out")
    windows = once.key_by("user").window("per-user", tumbling("1h"), name=name("Per user"))
    windows.aggregate(n=count()).updates.to("counts")
    every = once.window("all", tumbling("1h"), name=name("Everything"))
    every.aggregate(n=count()).updates.to("totals")
    once.key_by("user").process("watch", Nothing(), schema=ROW, name=name("Watch")).out.to("seen")
    return flow.graph()


NAMES = {
    "clean": "Clean up",
    "split": "Split",
    "score": "Score",
    "geo": "Find the place",
    "once": "First of each",
    "with-user": "Match users",
    "pairs": "Pair up",
    "per-user": "Per user",
    "all": "Everything",
    "watch": "Watch",
}


def test_every_operator_with_a_uid_can_have_a_name() -> None:
    graph = shop()
    [filter_] = [node.id for node in graph.nodes if node.operator == "filter"]
    assert graph.names == {**NAMES, filter_: "Real ones"}
    assert bind(graph, parse_log("files:topics")).names == graph.names


def test_names_survive_json_and_flows_without_any_are_stored_as_before() -> None:
    graph, plain = shop(), shop(named=False)
    assert Graph.from_json(graph.to_json()).names == graph.names
    assert Flow.from_json(graph.to_json()).graph().names == graph.names
    assert '"names"' not in plain.to_json()
    assert plain.names == {}


def test_a_name_changes_neither_the_plan_nor_the_state() -> None:
    first, second = shop(), shop(suffix=" (new)")
    plain = shop(named=False)
    assert [
        find_state_change(first, other, uid)
        for other in (second, plain)
        for uid in NAMES
        if first.node(uid).stateful
    ] == [None] * 12
    # Functions are stored anew for each flow; all else is the same.
    flow = Flow.from_graph(Graph(first.name, plain.nodes, first.dead_letters, first.names))
    assert flow.graph() == plain
    specs = [plan_flow(each, history={}, max_record=1).spec for each in (flow.graph(), plain)]
    assert specs[0] == specs[1]


def test_names_are_shown_beside_the_uids() -> None:
    text = Flow.from_graph(shop()).explain()
    assert 'with-user "Match users": enrich from users into who' in text
    assert 'clean "Clean up": map by ' in text
    view = build_view("shop", shop(), {})
    shown = {node.id: (node.name, node.title) for node in view.nodes}
    assert shown["with-user"] == ("Match users", "Match users")
    assert shown["orders"] == ("", "orders")
    assert decode(GraphView, encode(view)) == view


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[31m", "x" * 101, 5])
def test_a_name_is_one_readable_line(name: Any) -> None:
    flow = Flow("shop")
    orders = flow.stream("orders", ROW, event_time="at")
    with pytest.raises(HeadgateError) as caught:
        orders.dedupe("once", by="id", within="1h", name=name)
    assert caught.value.code == "BAD_NAME"
    assert "cannot add dedupe 'once' to flow 'shop': its name must be" in caught.value.message
    # Nothing of it was added.
    orders.dedupe("once", by="id", within="1h", name="Once").unique.to("out")
    assert flow.graph().names == {"once": "Once"}
