"""The drawing of a flow: where boxes and lines stand, and what they tell."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView, NodeFacts
from headgate.server.console.charts import graph_layout
from headgate.server.console.charts.graph import draw_graph, node_facts, show_nodes
from headgate.server.console.charts.graph_layout import BOX_WIDTH, lay_out
from headgate.server.console.pages.overview import side_panel

_names = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8, unique=True)


@given(_names, st.lists(st.tuples(st.sampled_from("abcdefghx"), st.sampled_from("abcdefghx"))))
def test_every_edge_goes_to_the_right_and_no_boxes_overlap(
    nodes: list[str], edges: list[tuple[str, str]]
) -> None:
    layout = lay_out(nodes, edges)
    assert set(layout.boxes) == set(nodes)
    assert len(layout.lines) == len(edges)
    for (source, target), points in zip(edges, layout.lines, strict=True):
        if points:
            assert points[0][0] == layout.boxes[source][0] + BOX_WIDTH
            assert points[-1][0] == layout.boxes[target][0]
            assert [x for x, _ in points] == sorted(x for x, _ in points)
    for (ax, ay), (bx, by) in itertools.combinations(layout.boxes.values(), 2):
        apart = abs(ax - bx) >= graph_layout.BOX_WIDTH or abs(ay - by) >= graph_layout.BOX_HEIGHT
        assert apart, "two boxes overlap"


def test_an_edge_that_closes_a_circle_is_the_only_one_without_a_line() -> None:
    layout = lay_out(["a", "b"], [("a", "b"), ("b", "a")])
    assert layout.lines[0]
    assert not layout.lines[1]


def test_a_line_that_passes_a_layer_runs_between_its_boxes() -> None:
    layout = lay_out(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    left, top = layout.boxes["b"]
    passing = [y for x, y in layout.lines[2] if left <= x <= left + BOX_WIDTH]
    assert passing
    assert all(not top <= y <= top + graph_layout.BOX_HEIGHT for y in passing)


def test_a_table_stands_beside_what_it_is_joined_to() -> None:
    layout = lay_out(["s", "t", "one", "two"], [("s", "one"), ("one", "two"), ("t", "two")])
    assert layout.boxes["t"][0] == layout.boxes["one"][0]


def test_the_lowest_stand_below_their_layer() -> None:
    edges = [("a", "bad"), ("a", "b"), ("c", "bad"), ("c", "d")]
    layout = lay_out(["a", "c", "bad", "b", "d"], edges, lowest=["bad"])
    assert layout.boxes["bad"][1] > max(layout.boxes["b"][1], layout.boxes["d"][1])


def _view() -> GraphView:
    def node(name: str, kind: str, **facts: Any) -> GraphNode:
        return GraphNode(
            id=name, kind=kind, title=name, detail=f"does <{name}>", facts=NodeFacts(**facts),
            operator="enrich" if kind == "operator" else "",
        )  # fmt: skip

    return GraphView(
        "orders",
        (
            node("orders", "source", records_in=1_500, in_per_s=10.0, lag_records=3),
            node("with-user", "operator", records_in=1_500, state_rows=7, state_bytes=2048,
                 busy=0.95),
            node("enriched", "output", records_in=1_400),
        ),
        (
            GraphEdge(source="orders", target="with-user", label="", exchange="keyed by userId",
                      records=1_500, per_s=10.0),
            GraphEdge(source="with-user", target="enriched", label="matched", exchange="",
                      records=1_400, per_s=None),
        ),
    )  # fmt: skip


def test_the_drawing_names_nodes_exchanges_and_records() -> None:
    shown = draw_graph(_view(), "with-user")
    for words in (
        "by userId",
        "1.50k",
        "1.40k",
        "busy 95 %",
        "2 KiB",
    ):
        assert words in shown
    assert shown.count('role="button"') == 3
    assert shown.count('aria-pressed="true"') == 1
    assert 'class="hg-bar hg-bad"' in shown
    assert "<with-user>" not in shown


def test_a_job_without_a_graph_says_so() -> None:
    assert "got as far" in draw_graph(GraphView("orders", (), ()))
    assert "<td" not in show_nodes(GraphView("orders", (), ()))


def test_the_side_panel_tells_all_of_a_node_and_links_to_its_state() -> None:
    view = _view()
    told = dict(node_facts(view, view.nodes[1]))
    assert told["From orders"] == "keyed by userId, 1,500 (10/s)"
    assert told["State"] == "7 rows, 2 KiB"
    assert "/jobs/orders/state?operator=with-user" in told["Its state"]
    assert "Watermark (UTC)" not in told
    assert (
        "/jobs/orders/outputs?output=enriched" in dict(node_facts(view, view.nodes[2]))["Its rows"]
    )
    assert side_panel(view, None) == ""
    assert side_panel(view, "gone") == ""
