"""The graph of a job as a drawing, and as a table for those who cannot use one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from urllib.parse import quote

from headgate.jobs.service import GraphEdge, GraphNode, GraphView
from headgate.server.console.charts.graph_layout import BOX_HEIGHT, BOX_WIDTH, Point, lay_out
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import (
    NONE,
    format_bytes,
    format_count,
    format_duration,
    format_moment,
    format_rate,
    format_share,
    format_short,
)
from headgate.server.console.parts.frame import job_path
from headgate.server.console.parts.markup import Html, element, join, link

_MARGIN = 8
_SMALLEST = 0.8
_TITLE_LENGTH = 20
_LINE_LENGTH = 27
_LABEL_LENGTH = 16
# What the service calls the lines to dead letters.
_REFUSED = "cannot be used"
_KINDS = {
    "source": "source",
    "table": "table",
    "operator": "operator",
    "output": "output",
    "dead-letters": "dead letters",
}

COLUMNS = (
    widgets.Column("node", "Node"),
    widgets.Column("kind", "Kind"),
    widgets.Column("in", "In", number=True),
    widgets.Column("out", "Out", number=True),
    widgets.Column("state", "State", number=True),
    widgets.Column("watermark", "Watermark"),
    widgets.Column("busy", "Busy", number=True),
    widgets.Column("lag", "Lag", number=True),
)


def draw_graph(view: GraphView, chosen: str | None = None) -> Html:
    """Return the graph as SVG: boxes from left to right, the lines between them, what moves.

    Every box is a button (`data-act="node"`, its value the node's id).
    """
    if not view.nodes:
        return element(
            "p", "No attempt of this job got as far as to have a graph.", class_="hg-empty"
        )
    layout = lay_out(
        [each.id for each in view.nodes],
        [(each.source, each.target) for each in view.edges],
        lowest=[each.id for each in view.nodes if each.kind == "dead-letters"],
    )
    lines = [
        _line(edge, points, _label_place(view.edges, edge))
        for edge, points in zip(view.edges, layout.lines, strict=True)
        if points
    ]
    boxes = [_box(each, layout.boxes[each.id], each.id == chosen) for each in view.nodes]
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    return element(
        "svg",
        element("g", *lines, class_="hg-lines", aria_hidden="true"),
        element("g", *boxes),
        viewBox=f"{-_MARGIN} {-_MARGIN} {width:.0f} {height:.0f}",
        # Made smaller to fit, as long as it can be read; then it scrolls in its own box.
        style=f"width: {width:.0f}px; min-width: {width * _SMALLEST:.0f}px",
        class_="hg-graph",
        role="group",
        aria_label=f"Graph of {view.job}: {len(view.nodes)} nodes",
    )


def node_rows(view: GraphView) -> list[dict[str, str | Html]]:
    """Return the nodes as rows of a table, in the order rows pass them."""
    return [
        {
            "id": each.id,
            "node": widgets.act(each.title, "node", each.id, class_="hg-link"),
            "kind": _kind(each),
            "in": format_count(each.facts.records_in),
            "out": format_count(each.facts.records_out),
            "state": format_bytes(each.facts.state_bytes),
            "watermark": format_moment(each.facts.watermark),
            "busy": format_share(each.facts.busy),
            "lag": format_node_lag(each),
        }
        for each in view.nodes
    ]


def node_facts(view: GraphView, node: GraphNode) -> list[tuple[str, str | Html]]:
    """Return all that is known of a node, as names and values; what does not apply is left out."""
    facts = node.facts
    rows: list[tuple[str, str | Html]] = [
        ("Kind", _kind(node)),
        ("What it does", node.detail),
        ("In", _counted(facts.records_in, facts.in_per_s)),
        ("Out", _counted(facts.records_out, facts.out_per_s)),
        ("State", _state(node)),
        ("Busy", format_share(facts.busy)),
        ("Watermark (UTC)", format_moment(facts.watermark)),
        ("Lag", format_node_lag(node)),
    ]
    found = [each for each in rows if each[1] != NONE]
    found += [(f"From {e.source}", _moves(e)) for e in view.edges if e.target == node.id]
    found += [(f"To {e.target}", _moves(e)) for e in view.edges if e.source == node.id]
    if facts.state_rows is not None:
        found.append(
            (
                "Its state",
                link("Look into it", f"{job_path(view.job, 'state')}?operator={quote(node.id)}"),
            )
        )
    if node.kind in ("output", "dead-letters"):
        found.append(
            (
                "Its rows",
                link("See them come", f"{job_path(view.job, 'outputs')}?output={quote(node.id)}"),
            )
        )
    return found


def format_node_lag(node: GraphNode) -> str:
    """Return what a source has left to read."""
    facts = node.facts
    left = [
        *([format_short(facts.lag_records)] if facts.lag_records is not None else []),
        *([format_bytes(facts.lag_bytes)] if facts.lag_bytes is not None else []),
    ]
    if not left:
        return NONE
    age = f", {format_duration(facts.lag_s)} old" if facts.lag_s else ""
    return " + ".join(left) + age


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
    words = [each for each in (edge.label, edge.exchange) if each]
    return ", ".join([*words, _counted(edge.records, edge.per_s)])


def _box(node: GraphNode, at: Point, chosen: bool) -> Html:
    x, y = at
    lines = _box_lines(node)
    says = f"{_kind(node)} {node.title}: {node.detail}. " + "; ".join(lines)
    texts = [
        element("text", _cut(each, _LINE_LENGTH), x="12", y=54 + 17 * number, class_="hg-box-line")
        for number, each in enumerate(lines[:2])
    ]
    return element(
        "g",
        element("title", f"{node.title}: {node.detail}"),
        element("rect", width=BOX_WIDTH, height=BOX_HEIGHT, rx="5", class_="hg-box-edge"),
        element("text", _kind(node), x="12", y="18", class_="hg-box-kind"),
        element("text", _cut(node.title, _TITLE_LENGTH), x="12", y="36", class_="hg-box-title"),
        *texts,
        _busy(node.facts.busy),
        transform=f"translate({x:.0f} {y:.0f})",
        class_=f"hg-box hg-box-{node.kind}{' hg-side' if node.side else ''}",
        tabindex="0",
        role="button",
        aria_label=says,
        aria_pressed="true" if chosen else "false",
        data_act="node",
        data_value=node.id,
        data_key=node.id,
    )


def _box_lines(node: GraphNode) -> list[str]:
    facts = node.facts
    lines = []
    if node.kind in ("source", "table"):
        lines.append(f"{format_short(facts.records_in)} read{_pace(facts.in_per_s)}")
    elif node.kind in ("output", "dead-letters"):
        lines.append(f"{format_short(facts.records_in)} rows{_pace(facts.in_per_s)}")
    elif facts.records_in is not None:
        lines.append(f"{format_short(facts.records_in)} in{_pace(facts.in_per_s)}")
    if facts.state_bytes is not None:
        lines.append(f"{format_short(facts.state_rows)} keys, {format_bytes(facts.state_bytes)}")
    if facts.watermark is not None:
        lines.append(f"watermark {format_moment(facts.watermark)[5:]}")
    lag = format_node_lag(node)
    if lag != NONE and (facts.lag_records or facts.lag_bytes):
        lines.append(f"lag {lag}")
    return lines


def _pace(per_s: float | None) -> str:
    return f", {format_rate(per_s)}" if per_s is not None else ""


def _busy(share: float | None) -> Html | None:
    if share is None:
        return None
    inner = BOX_WIDTH - 2
    full = max(0.0, min(1.0, share))
    tone = "hg-bad" if full >= 0.9 else "hg-warn" if full >= 0.7 else "hg-good"
    return join(
        element("text", f"busy {format_share(share)}", x=BOX_WIDTH - 12, y="18",
                text_anchor="end", class_="hg-box-kind"),
        element("rect", x="1", y=BOX_HEIGHT - 6, width=inner, height="5", class_="hg-bar-room"),
        element("rect", x="1", y=BOX_HEIGHT - 6, width=f"{inner * full:.1f}", height="5",
                class_=f"hg-bar {tone}"),
    )  # fmt: skip


def _line(edge: GraphEdge, points: Sequence[Point], place: float) -> Html:
    x, y = points[-1]
    labels = _label(_on_curve(points[-2], points[-1], place), _label_lines(edge))
    return element(
        "g",
        element("path", d=_curve(points), class_="hg-line"),
        element("path", d=f"M{x - 7:.0f} {y - 4:.0f}L{x:.0f} {y:.0f}L{x - 7:.0f} {y + 4:.0f}",
                class_="hg-line"),
        *labels,
        class_="hg-faint" if edge.label == _REFUSED else "hg-dry" if edge.records == 0 else None,
        data_key=f"{edge.source} {edge.target} {edge.label}",
    )  # fmt: skip


def _label_lines(edge: GraphEdge) -> list[str]:
    count = format_short(edge.records) if edge.records is not None else ""
    if edge.label == _REFUSED:
        # Every source has such a line, and their sum stands in the box they lead to.
        return []
    words = [_cut(each, _LABEL_LENGTH) for each in (_keyed(edge.exchange), edge.label) if each]
    lines = [*words[:1], " ".join(each for each in (*words[1:], count) if each)]
    return [each for each in lines if each]


def _label_place(edges: Sequence[GraphEdge], edge: GraphEdge) -> float:
    """Return how far along its line an edge is labelled: where no other line is near."""
    drawn = [each for each in edges if each.label != _REFUSED]
    parts_here = sum(each.source == edge.source for each in drawn) > 1
    meets_there = sum(each.target == edge.target for each in drawn) > 1
    if parts_here and meets_there:
        return 0.4
    return 0.68 if parts_here else 0.32 if meets_there else 0.5


def _label(at: Point, lines: Sequence[str]) -> list[Html]:
    x, y = at
    first = y - 5 if len(lines) > 1 else y - 4
    return [
        element("text", each, x=f"{x:.0f}", y=f"{first + 13 * number:.0f}",
                text_anchor="middle", class_="hg-line-text")
        for number, each in enumerate(lines)
    ]  # fmt: skip


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


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
