"""Unions as a user writes them: what they make, what is refused and how, and who walks through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate import Flow, HeadgateError
from headgate.engine.plan.plan import plan_flow
from headgate.flow.graph.ancestry import count_multipliers, sources_of
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Port, Union
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.schemas.types import Field, ListOf, Primitive
from headgate.flow.streams.stream import Stream
from headgate.jobs.audit.shape import shape_of
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.way_back import find_way_back, topics_of_operators
from headgate.jobs.views.graph import build_view
from headgate.windows import count, tumbling

ROW = "id BIGINT NOT NULL, price DOUBLE, at BIGINT NOT NULL"
UNION = "orders.union-1"


def streams(*columns: str | Schema, **more: Any) -> tuple[Flow, list[Stream]]:
    flow = Flow("shop")
    names = ("orders", "returns", "gifts")
    rows = zip(names, columns or (ROW, ROW, ROW), strict=False)
    return flow, [flow.stream(name, schema, **more) for name, schema in rows]


def united() -> Graph:
    """Return a flow in which the third stream comes in behind a step with state."""
    flow, (orders, returns, gifts) = streams()
    users = flow.table("users", "id BIGINT NOT NULL", key="id")
    known = gifts.enrich("known", users, on="id", into="user").matched.select("at", "price", "id")
    orders.union(returns, known).where("price > 1").to("all")
    return flow.graph()


def refused(code: str, act: Callable[[], object]) -> HeadgateError:
    with pytest.raises(HeadgateError) as caught:
        act()
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


def test_rows_have_the_columns_of_the_first_stream_null_where_any_may_be() -> None:
    tags = Field("tags", ListOf(Primitive("string"), nullable=False), nullable=False)
    first = Schema((*schema_of("id BIGINT NOT NULL, at TIMESTAMP NOT NULL").fields, tags))
    second = "at TIMESTAMP, tags ARRAY<STRING> NOT NULL, id BIGINT NOT NULL"
    _, (orders, returns) = streams(first, second)
    assert orders.union(returns).schema.fields == (
        Field("id", Primitive("bigint"), nullable=False),
        Field("at", Primitive("timestamp"), nullable=True),
        Field("tags", ListOf(Primitive("string"), nullable=True), nullable=False),
    )
    # Only Spark knows the type of a computed column: the other stream says it.
    computed = orders.with_columns(at="timestamp_millis(id)").union(returns)
    assert computed.schema.fields[1].type == Primitive("timestamp")


def test_columns_that_differ_are_named_and_the_hint_makes_them_alike() -> None:
    flow, (orders, returns) = streams(
        "id BIGINT, price DOUBLE, note STRING, `a b` INT",
        "id STRING, price DOUBLE, reason STRING, `a b` INT",
    )
    error = refused("BAD_UNION", lambda: orders.union(returns))
    assert error.message == (
        f"cannot add union '{UNION}' to flow 'shop': the columns of 'returns' differ from those "
        "of 'orders': id is STRING instead of BIGINT; note is missing; reason is extra"
    )
    call = error.hint.removeprefix("give it the same columns: ")
    assert call.startswith(".select(")
    fixed = eval(f"returns{call}", {"returns": returns})
    orders.union(fixed).to("all")
    assert flow.graph().schema_of(Port(UNION, "out")).names == ("id", "price", "note", "a b")


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("orders.union()", "got nothing"),
        ("orders.union(flow.table('t', ROW, key='id'))", "got a table"),
        ("orders.union(streams()[1][0])", "got another value"),
        ("orders.union('returns')", "got another value"),
        ("orders.union(orders)", "'orders' occurs twice"),
        ("orders.union(returns, returns)", "'returns' occurs twice"),
    ],
)
def test_what_is_no_other_stream_is_refused(call: str, found: str) -> None:
    flow, (orders, returns, _) = streams()
    names = {**globals(), "flow": flow, "orders": orders, "returns": returns}
    assert found in refused("BAD_UNION", lambda: eval(call, names)).message
    assert UNION not in flow._builder.nodes


def test_a_union_of_a_union_and_of_branches_is_a_union() -> None:
    flow, (orders, returns, gifts) = streams()
    both = orders.union(returns)
    every = both.union(gifts, orders.where("price > 9"))
    every.to("all")
    graph = flow.graph()
    node = graph.node(every.port.node)
    assert isinstance(node, Union)
    assert sources_of(graph.node, node) == tuple(map(graph.node, ("gifts", "orders", "returns")))
    # An order can come by two ways, and its rows are told apart.
    assert count_multipliers(graph.node, graph.node("all")) == 1
    spec = plan_flow(graph, history={}, max_record=1).spec
    direct, where = spec["sources"][0]["route"]
    first, _ = spec["unions"]
    assert direct == {"step": "union", "id": both.port.node, "from": "orders", "place": None}
    places = [step["place"] for step in (*first["route"], *where["then"])]
    assert places == [0, 2]


def test_at_most_three_operators_behind_each_other_may_copy_a_record() -> None:
    _, (rows, _, _) = streams()
    for number in range(3):
        rows = rows.union(rows.where(f"price > {number}"))
    error = refused("BAD_FUNCTION", lambda: rows.union(rows.where("price > 9")))
    assert "union of branches" in error.message


def test_the_json_and_the_text_of_a_union() -> None:
    graph = united()
    assert Graph.from_json(graph.to_json()) == graph
    assert Flow.from_graph(graph).graph() == graph
    text = Flow.from_graph(graph).explain()
    assert f"{UNION}: union of orders, returns, known.matched.select-1" in text
    # What is behind it is drawn once.
    assert text.count("output to topic all") == 1
    assert text.count(f"[forward]→ {UNION}\n") == 2


def test_event_time_is_needed_of_every_stream() -> None:
    flow = Flow("shop")
    orders = flow.stream("orders", ROW, event_time="at")
    returns = flow.stream("returns", ROW)
    windows = orders.union(returns).key_by("id").window("w", tumbling("1m"))
    error = refused("EVENT_TIME_MISSING", lambda: windows.aggregate(n=count()))
    assert "stream 'returns' has no event_time" in error.message


def test_the_way_behind_a_union_is_planned_once_for_all_its_streams() -> None:
    spec = plan_flow(united(), history={}, max_record=1).spec
    [union] = spec["unions"]
    assert union["columns"] == ["id", "price", "at"]
    assert [step["step"] for step in union["route"]] == ["where"]
    step = {"step": "union", "id": UNION, "place": None}
    assert spec["sources"][0]["route"] == [{**step, "from": "orders"}]
    assert spec["sources"][1]["route"] == [{**step, "from": "returns"}]
    [select] = spec["operators"][0]["matched"]
    assert select["then"] == [{**step, "from": "known.matched.select-1"}]


def test_a_function_on_dataframes_takes_rows_of_every_part() -> None:
    flow, (orders, returns, gifts) = streams()
    first = orders.transform("m:one")
    first.union(returns, orders).transform("m:two").union(gifts).transform("m:three").to("all")
    made = plan_flow(flow.graph(), history={}, max_record=1)
    one, two, three = made.functions
    assert one.upstream == ("orders",)
    assert two.upstream == (one.node.id, "returns", "orders")
    assert three.upstream == (two.node.id, "gifts")
    # Itself once, and once in each part that is made of it: one, two (twice) and three (twice).
    assert made.scans() == {"orders": 6, "returns": 3, "gifts": 2}


def letter(source: str, topic: str) -> DeadLetter:
    return DeadLetter(
        id="0:0",
        source=source,
        of_row=True,
        topic=topic,
        partition=0,
        offset=0,
        reason="EXPRESSION_FAILED",
        detail="",
        at=None,
        record_at=None,
        size=0,
    )


def test_a_record_goes_back_to_the_topic_that_its_letter_names() -> None:
    graph = united()
    where = f"where '{UNION}.where-1'"
    for topic in ("orders", "returns", "gifts"):
        back = find_way_back(graph, letter(where, topic))
        assert back.topic is not None, back
        assert back.topic.name == topic
    assert "does not say which of the sources" in find_way_back(graph, letter(where, "")).why_not
    assert where not in topics_of_operators(graph)


def test_an_audit_knows_which_records_may_be_in_an_output_twice() -> None:
    flow, (orders, returns) = streams(ROW, ROW)
    orders.union(returns).to("once")
    orders.union(returns.where("price > 1"), returns).to("twice")
    graph = flow.graph()
    shows = ["once", "twice"]
    shapes = {
        source: shape_of(graph, source, shows_places=shows, dead_letters_show=True)
        for source in ("orders", "returns")
    }
    assert shapes["orders"].outputs == shapes["returns"].outputs == ("once", "twice")
    assert shapes["orders"].uncounted == frozenset()
    assert shapes["returns"].group("once") is not None
    assert shapes["returns"].group("twice") is None


def test_the_graph_of_a_job_counts_the_rows_of_each_stream_of_a_union() -> None:
    ports = {"orders": 5, "returns": 3, "known.matched.select-1": 1, UNION: 9}
    view = build_view("shop", united(), {"ports": ports})
    [node] = [node for node in view.nodes if node.id == UNION]
    assert (node.facts.records_in, node.facts.records_out) == (9, 9)
    edges = {edge.source: edge.records for edge in view.edges if edge.target == UNION}
    assert edges == {"orders": 5, "returns": 3, "known.matched.select-1": 1}
