"""The graph of a job as a drawing, and as a table for readers who cannot use a drawing."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from headgate.jobs.views.graph import DEAD_LETTERS, GraphEdge, GraphNode, GraphView
from headgate.server.console.parts.formats import (
    NONE,
    format_backlog,
    format_bytes,
    format_count,
    format_moment,
    format_rate,
    format_share,
    format_short,
    job_path,
)
from headgate.server.console.parts.templates import render

_SHORT_LABEL = 12
# Shares of its time from which an operator is shown as busy.
_BUSY = 0.9
_RATHER_BUSY = 0.7
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


def describe_drawing(view: GraphView, chosen: str | None = None) -> dict[str, Any]:
    """Return the graph as the properties of the element that draws it.

    Dead letters are not a node with lines from everywhere: each box whose records cannot be used
    shows how many, with a link.
    """
    shown = [node for node in view.nodes if node.kind != DEAD_LETTERS]
    ids = {node.id for node in shown}
    letters = {node.id for node in view.nodes} - ids
    refused = {edge.source: edge for edge in view.edges if edge.target in letters and edge.records}
    return {
        "label": f"Graph of {view.job}: {len(shown)} nodes",
        "nothing": "No attempt of this job got as far as to have a graph.",
        "chosen": chosen,
        "nodes": [_box(view.job, node, refused.get(node.id)) for node in shown],
        "edges": [_line(edge) for edge in view.edges if {edge.source, edge.target} <= ids],
    }


def show_nodes(view: GraphView) -> Markup:
    """Return the nodes as a table, in the order rows pass them."""
    nodes = [(node, _kind(node), format_node_lag(node)) for node in view.nodes]
    return render("nodes", nodes=nodes)


def node_facts(view: GraphView, node: GraphNode) -> list[tuple[str, str]]:
    """Return the known facts of a node, as names and values."""
    facts = node.facts
    rows: list[tuple[str, str]] = [
        ("Uid", node.id if node.name else NONE),
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


def _box(job: str, node: GraphNode, refused: GraphEdge | None) -> dict[str, Any]:
    kind, lines, letters = _kind(node), _box_lines(node), _letters(job, refused)
    spoken = [*lines, letters["spoken"]] if letters else lines
    return {
        "id": node.id,
        "look": f"hg-box-{node.kind}{' hg-side' if node.side else ''}",
        "kind": kind,
        "title": node.title,
        "lines": lines,
        "busy": _busy(node.facts.busy),
        "letters": letters,
        "hint": f"{node.title}: {node.detail}",
        "spoken": f"{kind} {node.title}: {node.detail}. {'; '.join(spoken)}",
    }


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


def _busy(share: float | None) -> dict[str, Any] | None:
    if share is None:
        return None
    shown = max(0.0, min(1.0, share))
    tone = "bad" if shown >= _BUSY else "warn" if shown >= _RATHER_BUSY else "good"
    return {"words": f"busy {format_share(share)}", "share": round(shown, 3), "tone": tone}


def _letters(job: str, refused: GraphEdge | None) -> dict[str, str] | None:
    """Return the link from a box to its dead letters; None if it has none."""
    if refused is None or not refused.records:
        return None
    noun = "dead letter" if refused.records == 1 else "dead letters"
    return {
        "words": f"{format_short(refused.records)} {noun}",
        "spoken": f"{format_count(refused.records)} {noun} of {refused.source}",
        "href": f"{job_path(job, 'outputs')}?output={quote(refused.target)}",
    }


def _line(edge: GraphEdge) -> dict[str, Any]:
    return {
        "key": f"{edge.source} {edge.target} {edge.label}",
        "source": edge.source,
        "target": edge.target,
        "look": "hg-dry" if edge.records == 0 else "",
        "lines": _label_lines(edge),
    }


def _label_lines(edge: GraphEdge) -> list[str]:
    count = format_short(edge.records) if edge.records is not None else ""
    # Most rows stay in their task: only the others say how they are distributed.
    exchange = "" if edge.exchange == "forward" else edge.exchange
    # A long name has a line of its own, so that its end is cut and never the count.
    last = [edge.label, count] if len(edge.label) > _SHORT_LABEL else [f"{edge.label} {count}"]
    return [line.strip() for line in (exchange, *last) if line.strip()]
