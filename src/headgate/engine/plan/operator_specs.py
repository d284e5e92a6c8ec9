"""What stateful operators are in the kernel's plan, apart from their addresses and routes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from headgate._units import to_millis
from headgate.engine.plan.spark_types import to_spark_json
from headgate.flow.graph.codec import to_json
from headgate.flow.names import split_path
from headgate.flow.operators.nodes import (
    AsyncCall,
    CoProcess,
    Dedupe,
    Join,
    Label,
    OnError,
    Process,
    Window,
    key_names,
    label,
)
from headgate.flow.schemas.schema import Schema


def path_of(column: str | None) -> list[str] | None:
    """Return the names on the path to a column."""
    return None if column is None else list(split_path(column) or (column,))


def window_spec(node: Window) -> dict[str, Any]:
    """Return a window."""
    return {
        "kind": node.operator,
        "id": node.id,
        "name": label(node),
        "key": _key(node),
        "windows": to_json(node.windows, to_millis),
        "aggregates": [
            {
                "name": named.name,
                "kind": named.aggregate.kind.value,
                "path": path_of(named.aggregate.column),
                "limit": named.aggregate.limit,
            }
            for named in node.aggregates
        ],
        "lateness": to_millis(node.lateness),
        "early": to_json(node.early, to_millis),
    }


def dedupe_spec(node: Dedupe) -> dict[str, Any]:
    """Return a dedupe."""
    return {
        "kind": node.operator,
        "id": node.id,
        "name": label(node),
        "by": [path_of(path) for path in node.by],
        "within": to_millis(node.within),
    }


def join_spec(node: Join, history: Sequence[Schema]) -> dict[str, Any]:
    """Return a join.

    Args:
        history: Every schema that the rows of both sides have had, where it is known; the last is
            the current one.
    """
    return {
        "kind": node.operator,
        "id": node.id,
        "name": label(node),
        "key": _key(node),
        "rightKey": [{"name": path, "path": path_of(path)} for path in node.right_on],
        "before": to_millis(node.before),
        "after": to_millis(node.after),
        "into": node.into,
        "history": [to_spark_json(schema) for schema in history],
    }


def label_spec(node: Label) -> dict[str, Any]:
    """Return a label, without its table."""
    return {
        "kind": node.operator,
        "id": node.id,
        "name": label(node),
        "when": node.when,
        "label": node.label,
        "into": node.into,
    }


def process_spec(node: Process, history: Sequence[Schema]) -> dict[str, Any]:
    """Return a process.

    Args:
        history: Every schema that its state has had; the last is the current one.
    """
    return {
        # The kernel has one operator for both.
        "kind": Process.operator,
        "id": node.id,
        "name": label(node),
        "key": _key(node),
        "columns": None if node.columns is None else list(node.columns),
        "history": [to_spark_json(schema) for schema in history],
        "timers": node.timers,
        "ttl": any(state.ttl is not None for state in node.state),
        "deadLetters": node.on_error is OnError.DEAD_LETTER,
        "code": node.function.code,
    }


def right_spec(node: CoProcess, address: int) -> dict[str, Any]:
    """Return what a process of two streams has beside what a process has.

    Args:
        address: Where rows of the right stream go.
    """
    return {
        "rightAddress": address,
        "rightKey": [{"name": path, "path": path_of(path)} for path in node.right_key],
        "rightColumns": None if node.right_columns is None else list(node.right_columns),
    }


def call_spec(node: AsyncCall) -> dict[str, Any]:
    """Return how an async function is called."""
    return {
        "capacity": node.capacity,
        "timeoutMillis": to_millis(node.timeout),
        "retries": node.retries,
        "ordered": node.ordered,
    }


def find_millis(span: timedelta | None) -> int | None:
    """Return a duration in milliseconds, or None without one."""
    return None if span is None else to_millis(span)


def _key(node: Window | Process | Join) -> list[dict[str, Any]]:
    paths = node.on if isinstance(node, Join) else node.key
    return [
        {"name": name, "path": path_of(path)}
        for name, path in zip(key_names(node), paths, strict=True)
    ]
