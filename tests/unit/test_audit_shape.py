"""What a flow's graph promises of its records, and what an audit may therefore judge."""

from __future__ import annotations

from typing import Any

import pytest

from headgate import Console, Files, Flow, KeyedCoProcess, KeyedProcess
from headgate.flow.graph.graph import Graph
from headgate.flow.streams.stream import Stream
from headgate.jobs.audit.shape import Shape, origins, outputs_of, shape_of

USER = "id BIGINT NOT NULL, name STRING"
ORDER = "order BIGINT NOT NULL, user BIGINT, price DOUBLE"


def declare() -> tuple[Flow, Stream]:
    flow = Flow("shop")
    return flow, flow.stream("orders", ORDER)


def enriched(*, missing: bool) -> Graph:
    flow, orders = declare()
    users = flow.table("users", USER, key="id")
    result = orders.enrich("with-user", users, on="user", into="who")
    result.matched.select("order", "who").to("enriched")
    if missing:
        result.missing.to("missing")
    return flow.graph()


def look(graph: Graph, *, without: str = "") -> Shape:
    shows = [node.id for node in graph.outputs() if node.id != without]
    return shape_of(graph, "orders", shows_places=shows, dead_letters_show=True)


def test_a_flow_that_writes_every_branch_is_one_to_one() -> None:
    shape = look(enriched(missing=True))
    assert shape.is_one_to_one
    assert shape.outputs == ("enriched", "missing")
    assert (
        shape.group("enriched") == shape.group("missing") == shape.group("dead-letters", "orders")
    )


def test_a_side_output_that_nobody_writes_hides_losses_and_is_named() -> None:
    shape = look(enriched(missing=False))
    assert not shape.is_one_to_one
    assert "'with-user.missing'" in shape.unseen[0]
    assert shape.group("enriched") == shape.group("dead-letters", "orders") is not None


def test_a_condition_hides_losses_and_no_doubles() -> None:
    flow, orders = declare()
    orders.where("price > 0").to("paid")
    shape = look(flow.graph())
    assert not shape.is_one_to_one
    assert shape.unseen == ("where 'orders.where-1' drops rows",)
    assert shape.group("paid") is not None


def test_a_stream_that_is_written_twice_is_judged_output_by_output() -> None:
    flow, orders = declare()
    orders.to("first")
    orders.with_columns("price * 2 AS twice").to("second")
    shape = look(flow.graph())
    assert not shape.is_one_to_one
    assert "'orders' go to" in shape.copied[0]
    groups = [shape.group("first"), shape.group("second"), shape.group("dead-letters", "orders")]
    groups.append(shape.group("dead-letters", "with-columns 'orders.with-columns-1'"))
    assert len(set(groups)) == len(groups)
    assert None not in groups


def test_what_comes_out_of_a_function_is_not_counted() -> None:
    flow, orders = declare()
    orders.transform("lib:explode").where("price > 0").to("pieces")
    shape = look(flow.graph())
    assert shape.group("pieces") is None
    assert shape.group("dead-letters", "where 'orders.where-1'") is None
    assert shape.group("dead-letters", "orders") is not None
    assert "transform" in shape.unseen[0]


def test_an_output_whose_rows_carry_no_position_hides_losses_and_is_named() -> None:
    flow, orders = declare()
    orders.to(Files("copies", dir="data/copies"))
    shape = look(flow.graph(), without="copies")
    assert shape.unseen == ("rows in files copies in data/copies do not name their record",)


def test_dead_letters_that_cannot_be_read_hide_losses() -> None:
    flow = Flow("shop", dead_letters=Console())
    flow.stream("orders", ORDER).to("copies")
    graph = flow.graph()
    shape = shape_of(graph, "orders", shows_places=["copies"], dead_letters_show=False)
    assert not shape.is_one_to_one
    assert "dead letters" in shape.unseen[0]


def test_every_operator_is_traced_to_the_source_its_rows_come_from() -> None:
    graph = enriched(missing=True)
    sources = {name: [source.id for source in found] for name, found in origins(graph).items()}
    assert sources == {
        "orders": ["orders"],
        "users": ["users"],
        "enrich 'with-user'": ["orders"],
        "select 'with-user.matched.select-1'": ["orders"],
        "output 'enriched'": ["orders"],
        "output 'missing'": ["orders"],
    }


@pytest.mark.parametrize(("source", "outputs"), [("orders", ["a"]), ("visits", ["b"])])
def test_the_outputs_of_a_source_are_those_its_rows_may_be_in(
    source: str, outputs: list[str]
) -> None:
    flow, orders = declare()
    orders.to("a")
    flow.stream("visits", ORDER).to("b")
    assert [node.id for node in outputs_of(flow.graph(), source)] == outputs


class Twice(KeyedProcess[Any, Any]):
    """Emits what it wants of a record: nothing, one row or several."""

    def on_event(self, event: Any, ctx: Any) -> None:
        ctx.emit({"order": event.order})
        ctx.emit({"order": -event.order})


class Both(KeyedCoProcess[Any, Any, Any]):
    def on_left(self, event: Any, ctx: Any) -> None:
        ctx.emit({"order": event.order})

    on_right = on_left


@pytest.mark.parametrize("connected", [False, True])
def test_rows_of_keyed_functions_are_not_counted(connected: bool) -> None:
    flow, orders = declare()
    keyed = orders.key_by("user")
    if connected:
        other = orders.where("price > 5").key_by("user")
        made = keyed.connect(other).process("p", Both(), schema="order BIGINT")
    else:
        made = keyed.process("p", Twice(), schema="order BIGINT")
    made.out.to("made")
    shape = look(flow.graph())
    assert not shape.is_one_to_one
    assert "'p' may drop rows" in " ".join(shape.unseen)
    assert shape.group("made") is None
    assert shape.group("dead-letters", "orders") is not None
