"""The graph of a job as a drawing, and as a table for readers who cannot use a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote

from markupsafe import Markup

from headgate.jobs.views.graph import GraphEdge, GraphNode, GraphView
from headgate.server.console.charts.graph_layout import BOX_HEIGHT, BOX_WIDTH, Point, lay_out
from headgate.server.console.parts.formats import (
    NONE,
    cut,
    format_backlog,
    format_bytes,
    format_count,
    format_moment,
    format_rate,
    format_share,
    format_short,
    job_path,
)
from headgate.server.console.parts.templates import note, render

_MARGIN = 8
_SMALLEST = 0.8
_TITLE_LENGTH = 20
_LINE_LENGTH = 27
_LABEL_LENGTH = 16
# The label of edges to dead letters.
_REFUSED = "cannot be used"
_KINDS = {
    "source": "source",
    "table": "table",
    "operator": "operator",
    "output": "output",
    "dead-letters": "dead letters",
}
# What the records are to a node of a kind.
_MOVED = {"source": "read", "table": "read", "output": "rows", "dead-letters": "rows"}

_LINK = Markup('<a href="{}">{}</a>')


@dataclass(frozen=True, slots=True)
class _Box:
    """A node as it is drawn; `lines` are what it says of itself."""

    node: GraphNode
    x: str
    y: str
    kind: str
    lines: list[str]


@dataclass(frozen=True, slots=True)
class _Line:
    """An edge as it is drawn; a label is a place and a text."""

    key: str
    look: str
    curve: str
    arrow: str
    labels: list[tuple[str, str, str]]


def draw_graph(view: GraphView, chosen: str | None = None) -> Markup:
    """Return the graph as SVG: boxes from left to right, the lines between them, what moves.

    Every box is a button (`data-act="node"`, its value the node's id).
    """
    if not view.nodes:
        return note("No attempt of this job got as far as to have a graph.")
    layout = lay_out(
        [node.id for node in view.nodes],
        [(edge.source, edge.target) for edge in view.edges],
        lowest=[node.id for node in view.nodes if node.kind == "dead-letters"],
    )
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    return render(
        "graph",
        view=view,
        chosen=chosen,
        lines=[
            _line(edge, points, _label_place(view.edges, edge))
            for edge, points in zip(view.edges, layout.lines, strict=True)
            if points
        ],
        boxes=[_box(node, layout.boxes[node.id]) for node in view.nodes],
        margin=_MARGIN,
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        # Made smaller to fit, as long as it can be read; then it scrolls in its own box.
        least_width=f"{width * _SMALLEST:.0f}",
        box_width=BOX_WIDTH,
        box_height=BOX_HEIGHT,
        title_length=_TITLE_LENGTH,
        line_length=_LINE_LENGTH,
    )


def show_nodes(view: GraphView) -> Markup:
    """Return the nodes as a table, in the order rows pass them."""
    nodes = [(node, _kind(node), format_node_lag(node)) for node in view.nodes]
    return render("nodes", nodes=nodes)


def node_facts(view: GraphView, node: GraphNode) -> list[tuple[str, str]]:
    """Return the known facts of a node, as names and values."""
    facts = node.facts
    rows: list[tuple[str, str]] = [
        ("Kind", _kind(node)),
        ("What it does", node.detail),
        ("In", _counted(facts.records_in, facts.in_per_s)),
        ("Out", _counted(facts.records_out, facts.out_per_s)),
        ("State", _state(node)),
        ("Busy", format_share(facts.busy)),
        ("Watermark (UTC)", format_moment(facts.watermark)),
        ("Lag", format_node_lag(node)),
    ]
    known = [(name, value) for name, value in rows if value != NONE]
    known += [(f"From {e.source}", _moves(e)) for e in view.edges if e.target == node.id]
    known += [(f"To {e.target}", _moves(e)) for e in view.edges if e.source == node.id]
    if facts.state_rows is not None:
        path = f"{job_path(view.job, 'state')}?operator={quote(node.id)}"
        known.append(("Its state", _LINK.format(path, "Look into it")))
    if node.kind in ("output", "dead-letters"):
        path = f"{job_path(view.job, 'outputs')}?output={quote(node.id)}"
        known.append(("Its rows", _LINK.format(path, "See them come")))
    return known


def format_node_lag(node: GraphNode) -> str:
    """Return what a source has left to read."""
    return format_backlog(node.facts.lag_records, node.facts.lag_bytes, node.facts.lag_s)


def _kind(node: GraphNode) -> str:
    kind = _KINDS.get(node.kind, node.kind)
    if node.kind == "operator":
        return node.operator or kind
    return f"side {kind}" if node.side and node.kind == "output" else kind


def _state(node: GraphNode) -> str:
    rows, size = node.facts.state_rows, node.facts.state_bytes
    return NONE if rows is None else f"{format_count(rows)} rows, {format_bytes(size)}"


def _counted(records: int | None, per_s: float | None) -> str:
    if records is None:
        return NONE
    return format_count(records) + (f" ({format_rate(per_s)})" if per_s is not None else "")


def _moves(edge: GraphEdge) -> str:
    words = [word for word in (edge.label, edge.exchange) if word]
    return ", ".join([*words, _counted(edge.records, edge.per_s)])


def _box(node: GraphNode, at: Point) -> _Box:
    x, y = at
    return _Box(node, f"{x:.0f}", f"{y:.0f}", _kind(node), _box_lines(node))


def _box_lines(node: GraphNode) -> list[str]:
    facts = node.facts
    lines = []
    if node.kind != "operator" or facts.records_in is not None:
        word = _MOVED.get(node.kind, "in")
        lines.append(f"{format_short(facts.records_in)} {word}{_pace(facts.in_per_s)}")
    if facts.state_bytes is not None:
        lines.append(f"{format_short(facts.state_rows)} keys, {format_bytes(facts.state_bytes)}")
    if facts.watermark is not None:
        lines.append(f"watermark {format_moment(facts.watermark)[5:]}")
    if facts.lag_records or facts.lag_bytes:
        lines.append(f"lag {format_node_lag(node)}")
    return lines


def _pace(per_s: float | None) -> str:
    return f", {format_rate(per_s)}" if per_s is not None else ""


def _line(edge: GraphEdge, points: Sequence[Point], place: float) -> _Line:
    x, y = points[-1]
    return _Line(
        key=f"{edge.source} {edge.target} {edge.label}",
        look="hg-faint" if edge.label == _REFUSED else "hg-dry" if edge.records == 0 else "",
        curve=_curve(points),
        arrow=f"M{x - 7:.0f} {y - 4:.0f}L{x:.0f} {y:.0f}L{x - 7:.0f} {y + 4:.0f}",
        labels=_labels(_on_curve(points[-2], points[-1], place), _label_lines(edge)),
    )


def _label_lines(edge: GraphEdge) -> list[str]:
    count = format_short(edge.records) if edge.records is not None else ""
    if edge.label == _REFUSED:
        # Every source has such a line, and their sum stands in the box they lead to.
        return []
    words = [cut(word, _LABEL_LENGTH) for word in (_keyed(edge.exchange), edge.label) if word]
    lines = [*words[:1], " ".join(word for word in (*words[1:], count) if word)]
    return [line for line in lines if line]


def _label_place(edges: Sequence[GraphEdge], edge: GraphEdge) -> float:
    """Return how far along its line an edge is labelled: where no other line is near."""
    drawn = [other for other in edges if other.label != _REFUSED]
    parts_here = sum(other.source == edge.source for other in drawn) > 1
    meets_there = sum(other.target == edge.target for other in drawn) > 1
    if parts_here and meets_there:
        return 0.4
    return 0.68 if parts_here else 0.32 if meets_there else 0.5


def _labels(at: Point, texts: Sequence[str]) -> list[tuple[str, str, str]]:
    x, y = at
    first = y - 5 if len(texts) > 1 else y - 4
    return [(f"{x:.0f}", f"{first + 13 * n:.0f}", text) for n, text in enumerate(texts)]


def _on_curve(start: Point, end: Point, share: float) -> Point:
    """Return the point of a line's bend at a share of its way, as `_curve` draws it."""
    (ax, ay), (bx, by) = start, end
    back, middle = 1 - share, (ax + bx) / 2
    bend = 3 * back * share
    x = back**3 * ax + bend * middle + share**3 * bx
    return x, ay + (by - ay) * (3 * share**2 - 2 * share**3)


def _keyed(exchange: str) -> str:
    return exchange.replace("keyed by ", "by ")


def _curve(points: Sequence[Point]) -> str:
    x, y = points[0]
    path = [f"M{x:.0f} {y:.0f}"]
    for (ax, ay), (bx, by) in pairwise(points):
        bend = (bx - ax) / 2
        path.append(
            f"L{bx:.0f} {by:.0f}"
            if ay == by
            else f"C{ax + bend:.0f} {ay:.0f} {bx - bend:.0f} {by:.0f} {bx:.0f} {by:.0f}"
        )
    return "".join(path)
