"""The drawing of a flow: what its boxes and lines tell. `tests/console` measures where they are."""

from __future__ import annotations

from typing import Any

from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView, NodeFacts
from headgate.server.console.charts.graph import describe_drawing, node_facts, show_nodes
from headgate.server.console.pages.overview import side_panel


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
            GraphEdge(source="orders", target="with-user", label="", exchange="key_by userId",
                      records=1_500, per_s=10.0),
            GraphEdge(source="with-user", target="enriched", label="matched", exchange="",
                      records=1_400, per_s=None),
        ),
    )  # fmt: skip


def _boxes(view: GraphView) -> dict[str, dict[str, Any]]:
    return {box["id"]: box for box in describe_drawing(view)["nodes"]}


def test_the_drawing_names_nodes_exchanges_and_records() -> None:
    drawing = describe_drawing(_view(), "with-user")
    assert [line["lines"] for line in drawing["edges"]] == [
        ["key_by userId", "1.50k"],
        ["matched 1.40k"],
    ]
    boxes = {box["id"]: box for box in drawing["nodes"]}
    assert boxes["orders"]["lines"] == ["1.50k read, 10/s", "lag 3"]
    assert boxes["with-user"]["lines"] == ["1.50k in", "7 keys, 2 KiB"]
    assert boxes["with-user"]["busy"] == {"words": "busy 95 %", "share": 0.95, "tone": "bad"}
    assert drawing["chosen"] == "with-user"


def test_dead_letters_are_a_link_of_the_box_and_no_line() -> None:
    view = _view()
    letters = GraphNode(
        id="dead-letters", kind="dead-letters", title="dead-letters", detail="", facts=NodeFacts()
    )
    refused = [
        GraphEdge(source=name, target=letters.id, label="cannot be used", exchange="",
                  records=records, per_s=None)
        for name, records in (("orders", 1_183), ("with-user", 0), ("enriched", 1))
    ]  # fmt: skip
    crowded = GraphView(view.job, (*view.nodes, letters), (*view.edges, *refused))
    boxes = _boxes(crowded)
    assert list(boxes) == ["orders", "with-user", "enriched"]
    assert len(describe_drawing(crowded)["edges"]) == len(view.edges)
    assert boxes["orders"]["letters"] == {
        "words": "1.18k dead letters",
        "spoken": "1,183 dead letters of orders",
        "href": "/jobs/orders/outputs?output=dead-letters",
    }
    assert "1,183 dead letters of orders" in boxes["orders"]["spoken"]
    assert boxes["with-user"]["letters"] is None
    assert boxes["enriched"]["letters"]["words"] == "1 dead letter"
    assert dict(node_facts(crowded, view.nodes[0]))["To dead-letters"] == "cannot be used, 1,183"


def test_a_long_name_of_an_output_has_a_line_of_its_own() -> None:
    view = _view()
    named = GraphEdge(source="orders", target="with-user", label="of-all-customers",
                      exchange="", records=5, per_s=None)  # fmt: skip
    (line,) = describe_drawing(GraphView(view.job, view.nodes, (named,)))["edges"]
    assert line["lines"] == ["of-all-customers", "5"]


def test_a_job_without_a_graph_says_so() -> None:
    nothing = GraphView("orders", (), ())
    assert describe_drawing(nothing)["nodes"] == []
    assert "<td" not in show_nodes(nothing)


def test_the_side_panel_tells_all_of_a_node_and_links_to_its_state() -> None:
    view = _view()
    told = dict(node_facts(view, view.nodes[1]))
    assert told["From orders"] == "key_by userId, 1,500 (10/s)"
    assert told["State"] == "7 rows, 2 KiB"
    assert "/jobs/orders/state?operator=with-user" in told["Its state"]
    assert "Watermark (UTC)" not in told
    assert (
        "/jobs/orders/outputs?output=enriched" in dict(node_facts(view, view.nodes[2]))["Its rows"]
    )
    assert side_panel(view, None) == ""
    assert side_panel(view, "gone") == ""
