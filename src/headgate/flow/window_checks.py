"""Checks of operators on event time against the nodes before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headgate.errors import HeadgateError
from headgate.flow.aggregates import NamedAggregate, result_field
from headgate.flow.names import check_column_name, split_path
from headgate.flow.operators import Dedupe, Node, Source, Window, input_ports, label
from headgate.flow.schema import Schema, key_kind, type_to_ddl

WINDOW_START, WINDOW_END = "window_start", "window_end"
PARTIAL, CORRECTION, PROCESSED_AT = "partial", "correction", "processed_at"

Nodes = Mapping[str, Node]


def check_window(node: Window, nodes: Nodes, schema: Schema, *, what: str) -> None:
    """Refuse a window without event time or with columns that do not fit."""
    _check_timed(node, nodes, what)
    _check_key(node.key, schema, what)
    if not node.aggregates:
        raise HeadgateError(
            "BAD_AGGREGATE",
            f"{what}: it has no aggregates",
            hint="add an aggregate: .aggregate(events=count())",
        )
    for named in node.aggregates:
        _check_aggregate(named, schema, what)
    _check_names(node, what)


def check_dedupe(node: Dedupe, nodes: Nodes, schema: Schema, *, what: str) -> None:
    """Refuse a dedupe without event time, or by columns that cannot be a key."""
    _check_timed(node, nodes, what)
    if not node.by:
        raise HeadgateError(
            "KEY_MISMATCH", f"{what}: by must name at least one column", hint="use by='event_id'"
        )
    _check_key(node.by, schema, what)


def key_names(node: Window) -> tuple[str, ...]:
    """Return the names of the key columns in the rows of `updates`."""
    return tuple((split_path(path) or (path,))[-1] for path in node.key)


def _check_timed(node: Window | Dedupe, nodes: Nodes, what: str) -> None:
    above = nodes[node.input.node]
    while ports := input_ports(above):
        above = nodes[ports[0].node]
    assert isinstance(above, Source), "only sources have no input"
    if above.event_time is None:
        raise HeadgateError(
            "EVENT_TIME_MISSING",
            f"{what}: {label(above)} has no event_time",
            hint=f"name the column: flow.stream({above.topic.name!r}, ..., event_time='createdAt')",
        )


def _check_key(paths: tuple[str, ...], schema: Schema, what: str) -> None:
    for path in paths:
        column = schema.get(path, what=what)
        if key_kind(column.type) is None:
            raise HeadgateError(
                "KEY_TYPE",
                f"{what}: {path!r} is {type_to_ddl(column.type)}, which cannot be a key",
                hint="use an integer, string, boolean, date, timestamp or decimal column",
            )


def _check_aggregate(named: NamedAggregate, schema: Schema, what: str) -> None:
    check_column_name(named.name)
    path = named.aggregate.column
    column = None if path is None else schema.get(path, what=what)
    if result_field(named, column) is None:
        assert column is not None, "counting rows always fits"
        raise HeadgateError(
            "BAD_AGGREGATE",
            f"{what}: {named.aggregate.describe()} does not work on {type_to_ddl(column.type)}",
            hint="use a column of a supported type, or create one with with_columns",
        )


def _check_names(node: Window, what: str) -> None:
    seen: set[str] = set()
    for name in _names(node):
        if name.lower() in seen:
            raise HeadgateError(
                "DUPLICATE_COLUMN",
                f"{what}: two of its result columns are named {name!r}",
                hint=f"rename one: with_columns({name}_2='...') and key_by('{name}_2'), or use "
                "another name in aggregate",
            )
        seen.add(name.lower())


def _names(node: Window) -> Iterator[str]:
    yield from (WINDOW_START, WINDOW_END, PARTIAL, CORRECTION, PROCESSED_AT)
    yield from key_names(node)
    yield from (named.name for named in node.aggregates)
