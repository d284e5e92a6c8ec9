"""Walks from a node of a graph to its sources."""

from headgate import Flow
from headgate.flow.graph.ancestry import (
    count_multipliers,
    feeds_table,
    is_of_side_output,
    sources_of,
    upstream_nodes,
    upstream_ports,
)
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Port

ORDER = "id bigint, user bigint"
USER = "id bigint, name string"


def enriched() -> Graph:
    flow = Flow("shop")
    orders = flow.stream("orders", ORDER)
    users = flow.table("users", USER, key="id")
    with_user = orders.where("id > 0").enrich("with-user", users, on="user", into="row")
    with_user.matched.flat_map("split", lambda row: [row], schema=ORDER).to("pieces")
    with_user.missing.where("id > 1").to("missing")
    return flow.graph()


def test_a_walk_yields_the_ports_of_the_rows_nearest_first_and_no_table() -> None:
    graph = enriched()
    ports = [str(port) for port in upstream_ports(graph.node, graph.node("pieces"))]
    assert ports == ["split", "with-user.matched", "orders.where-1", "orders"]
    nodes = [node.id for node in upstream_nodes(graph.node, graph.node("split"))]
    assert nodes == ["with-user", "orders.where-1", "orders"]


def test_the_sources_of_a_node_are_streams_and_a_source_is_its_own() -> None:
    graph = enriched()
    assert sources_of(graph.node, graph.node("missing")) == (graph.node("orders"),)
    assert sources_of(graph.node, graph.node("users")) == (graph.node("users"),)


def test_only_the_table_of_an_enrich_feeds_it_as_a_table() -> None:
    graph = enriched()
    with_user = graph.node("with-user")
    assert feeds_table(Port("users", "out"), with_user)
    assert not feeds_table(Port("orders.where-1", "out"), with_user)
    assert not feeds_table(Port("orders", "out"), with_user)


def test_operators_that_multiply_rows_are_counted_with_the_node_itself() -> None:
    graph = enriched()
    assert count_multipliers(graph.node, graph.node("pieces")) == 1
    assert count_multipliers(graph.node, graph.node("split")) == 1
    assert count_multipliers(graph.node, graph.node("missing")) == 0


def test_rows_behind_stateless_steps_of_a_side_output_are_of_it() -> None:
    graph = enriched()
    assert is_of_side_output(graph.node, Port("with-user.missing.where-1", "out"))
    assert not is_of_side_output(graph.node, Port("split", "out"))
