"""Jobs, checkpoints and state as a notebook shows them; all text is escaped below."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from headgate._units import format_count, format_size
from headgate.checkpoints.checkpoint import AnyCheckpoint, Checkpoint
from headgate.flow.drawing.html import heading, table
from headgate.flow.drawing.svg import Box, Line, draw
from headgate.flow.graph.edges import Exchange
from headgate.interactive.tables import Rows
from headgate.jobs.state.values import HistoryEntry
from headgate.jobs.views.graph import DEAD_LETTERS, GraphEdge, GraphNode, GraphView
from headgate.jobs.views.job import JobView

CHECKPOINT_COLUMNS = ("id", "kind", "run", "completed (UTC)", "records", "size", "status")
_NONE = "-"


def show_job(view: JobView, graph: GraphView) -> str:
    """Return a job's state and its graph, with the rows on each edge."""
    facts = [
        ("state", view.state),
        ("reason", view.reason),
        ("records/s", format_count(view.records_per_s) if view.is_alive else ""),
        ("lag", _lag(view)),
        ("checkpoint", view.checkpoint or ""),
        ("next", view.todo),
    ]
    shown = table(("", ""), [fact for fact in facts if fact[1]])
    return heading(view.name, "job") + shown + (draw_job(graph) if graph.nodes else "")


def draw_job(graph: GraphView) -> str:
    """Return a job's graph as SVG."""
    used = {edge.target for edge in graph.edges if edge.records} | {
        node.id for node in graph.nodes if node.kind != DEAD_LETTERS
    }
    boxes = [_box(node) for node in graph.nodes if node.id in used]
    lines = [
        Line(edge.source, edge.target, _label(edge))
        for edge in graph.edges
        if {edge.source, edge.target} <= used
    ]
    return draw(boxes, lines, title=f"Job {graph.job}")


def _box(node: GraphNode) -> Box:
    facts = node.facts
    lines = [node.detail]
    if facts.records_in is not None:
        lines.append(f"{format_count(facts.records_in)} records")
    if facts.state_rows is not None:
        size = "" if facts.state_bytes is None else f", {format_size(facts.state_bytes)}"
        lines.append(f"{format_count(facts.state_rows)} rows of state{size}")
    return Box(
        node.id, node.kind, node.title, tuple(lines), f"{node.title}: {node.detail}", node.side
    )


def _label(edge: GraphEdge) -> str:
    count = "" if edge.records is None else format_count(edge.records)
    exchange = "" if edge.exchange == Exchange.FORWARD else edge.exchange
    return " ".join(part for part in (edge.label, exchange, count) if part)


def _lag(view: JobView) -> str:
    if view.lag_records is not None:
        return f"{format_count(view.lag_records)} records"
    return "" if view.lag_bytes is None else format_size(view.lag_bytes)


def checkpoint_cells(checkpoint: AnyCheckpoint) -> tuple[str, ...]:
    """Return the cells of `CHECKPOINT_COLUMNS`."""
    kind = checkpoint.kind + (", pinned" if checkpoint.pinned else "")
    run = checkpoint.run or _NONE
    if not isinstance(checkpoint, Checkpoint):
        return (checkpoint.id, kind, run, _NONE, _NONE, _NONE, checkpoint.status)
    return (
        checkpoint.id,
        kind,
        run,
        _moment(checkpoint.completed_at),
        format_count(checkpoint.records),
        format_size(checkpoint.full_bytes),
        checkpoint.status,
    )


def history_cells(entry: HistoryEntry) -> tuple[str, ...]:
    value = entry.problem or _NONE if entry.value is None else json_text(entry.value)
    return (entry.checkpoint, _moment(entry.moment), entry.change, value)


def list_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Rows[dict[str, Any]]:
    """Return rows of state as dicts."""
    return Rows(
        [dict(zip(columns, row, strict=True)) for row in rows],
        tuple(columns),
        lambda row: [json_text(value) for value in row.values()],
    )


def key_text(key: Any) -> str:
    """Return a key as the command line takes it: a text stays a text, even one of digits."""
    return json.dumps(list(key) if isinstance(key, tuple) else key, ensure_ascii=False, default=str)


def json_text(value: Any) -> str:
    """Return a JSON value for a cell."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
