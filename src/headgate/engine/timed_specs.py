"""The specs of operators on event time for the kernel, independent of the plan. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headgate.flow.graph import Graph
from headgate.flow.names import split_path
from headgate.flow.operators import Dedupe, Window, label
from headgate.flow.triggers import EveryEvents, EveryEventTime, EveryProcessingTime, Trigger
from headgate.flow.window_checks import key_names
from headgate.flow.windowing import Session, Sliding, Tumbling, Windows


def window_spec(node: Window) -> dict[str, Any]:
    """Return the kernel's spec of a window operator."""
    return {
        "kind": node.operator,
        "id": node.id,
        "name": label(node),
        "key": [
            {"name": name, "path": path_of(path)}
            for name, path in zip(key_names(node), node.key, strict=True)
        ],
        "windows": _windows(node.windows),
        "aggregates": [
            {
                "name": named.name,
                "kind": named.aggregate.kind.value,
                "path": path_of(named.aggregate.column),
                "limit": named.aggregate.limit,
            }
            for named in node.aggregates
        ],
        "lateness": _millis(node.lateness),
        "early": [_trigger(named) for named in node.early],
    }


def dedupe_spec(node: Dedupe) -> dict[str, Any]:
    """Return the kernel's spec of a dedupe operator."""
    return {
        "kind": node.operator,
        "id": node.id,
        "name": label(node),
        "by": [path_of(path) for path in node.by],
        "within": _millis(node.within),
    }


def path_of(column: str | None) -> list[str] | None:
    """Return the names on the path to a column."""
    return None if column is None else list(split_path(column) or (column,))


def _windows(windows: Windows) -> dict[str, Any]:
    match windows:
        case Tumbling(size):
            return {"type": "tumbling", "size": _millis(size)}
        case Sliding(size, every):
            return {"type": "sliding", "size": _millis(size), "every": _millis(every)}
        case Session(gap):
            return {"type": "session", "gap": _millis(gap)}


def _trigger(trigger: Trigger) -> dict[str, Any]:
    match trigger:
        case EveryEvents(n):
            return {"type": "events", "n": n}
        case EveryEventTime(span):
            return {"type": "event-time", "every": _millis(span)}
        case EveryProcessingTime(span):
            return {"type": "processing-time", "every": _millis(span)}


def find_nudge(graph: Graph) -> timedelta | None:
    """Return the interval at which a quiet flow checks for results due by the clock."""
    spans = [
        trigger.span
        for node in graph.nodes
        if isinstance(node, Window)
        for trigger in node.early
        if isinstance(trigger, EveryProcessingTime)
    ]
    return min(spans, default=None)


def find_millis(span: timedelta | None) -> int | None:
    """Return a duration in milliseconds for the JVM."""
    return None if span is None else _millis(span)


def _millis(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
