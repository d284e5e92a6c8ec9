"""Whether an operator can read the state that another flow's operator wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Dedupe, Enrich, Join, Label, Node, Process, Window
from headgate.flow.schemas.schema import Schema, key_kind, type_to_ddl
from headgate.flow.state.joins import describe_join, unreadable_columns
from headgate.flow.state.processes import unreadable_changes


def find_state_change(old: Graph, new: Graph, uid: str) -> str | None:
    """Return how an operator's state differs from what the flow needs, or None if it fits.

    Early results, lateness, the memory of `dedupe` and the bounds of a join may change: state does
    not depend on them.
    Table schemas are compared elsewhere, against every schema the table has had.
    """
    before, now = old.node(uid), new.node(uid)
    old_shape, new_shape = _shape(before, old), _shape(now, new)
    if isinstance(before, Process) and isinstance(now, Process):
        old_shape, new_shape = _by(before, old), _by(now, new)
        changes = unreadable_changes(before, now) if old_shape == new_shape else []
        if changes:
            return f"cannot read its state any more: {'; '.join(changes)}"
    if isinstance(before, Join) and isinstance(now, Join) and old_shape == new_shape:
        changes = unreadable_columns(before, old, now, new)
        if changes:
            return f"cannot read its state any more: {'; '.join(changes)}"
    if old_shape == new_shape:
        return None
    return f"holds {old_shape}, and the flow needs {new_shape}"


def warn_of_lost_state(
    old: Graph, new: Graph, *, dropped: Sequence[str], empty: Sequence[str]
) -> Iterator[str]:
    """Yield a warning for each operator that starts empty while state is dropped.

    Args:
        dropped: The uids whose state of the old flow is left behind.
        empty: The uids of the new flow that start without state.
    """
    shapes = {node.id: _shape(node, old) for node in old.stateful() if node.id in dropped}
    for uid in empty if dropped else ():
        node = new.node(uid)
        effect = _effect(node)
        needs = _shape(node, new)
        alike = [gone for gone, held in shapes.items() if held == needs]
        if uid in dropped:
            yield f"operator {uid!r} starts empty, since its state is dropped: {effect}"
        elif alike:
            yield (
                f"operator {uid!r} starts empty, and the state of {alike[0]!r} is dropped, which "
                f"holds {needs} as well: {effect}; if {alike[0]!r} was renamed, keep that uid in "
                "the flow and omit --drop-state"
            )
        else:
            names = ", ".join(repr(gone) for gone in dropped)
            yield f"operator {uid!r} starts empty, and the state of {names} is dropped: {effect}"


def _effect(node: Node) -> str:
    match node:
        case Enrich(table=table):
            return (
                f"rows of table {table!r} that were read before are not read again, so their "
                "events are 'missing' until the rows change"
            )
        case Window():
            return "open windows lose the events that they have counted"
        case Dedupe():
            return "records that came before can pass once more"
        case Join():
            return "rows that wait for a match are gone, and are in no output"
        case Label(table=table):
            return f"rules of {table!r} that were read before are not read again until they change"
        case Process():
            return "every key starts without its state and its timers"
        case _:
            return "it has no state"


def _shape(node: Node, graph: Graph) -> str:
    match node:
        case Enrich(table=table):
            return f"rows of table {table!r}"
        case Window():
            keyed = f" by {_keys(node.key, node, graph)}" if node.key else ""
            return f"{node.windows.describe()} windows{keyed} of {_figures(node, graph)}"
        case Dedupe(by=by):
            return f"keys seen by {_keys(by, node, graph)}"
        case Join():
            return describe_join(node, graph)
        case Label(table=table):
            return f"rules of {table!r}"
        case Process():
            names = ", ".join(state.name for state in node.state) or "timers"
            return f"{names} of a process, {_by(node, graph)}"
        case _:
            return "no state"


def _keys(paths: tuple[str, ...], node: Window | Dedupe | Process, graph: Graph) -> str:
    """Return the key columns with their kinds, which decide how a key's text is read."""
    events = graph.schema_of(node.input)
    fields = [(path, events.find(path)) for path in paths]
    return ", ".join(
        path if field is None else f"{path} ({key_kind(field.type)})" for path, field in fields
    )


def _by(node: Process, graph: Graph) -> str:
    keyed = f"state by {_keys(node.key, node, graph)}" if node.key else "no keys"
    return f"{keyed}, with rules of {node.table!r}" if node.table else keyed


def _figures(node: Window, graph: Graph) -> str:
    """Return the aggregates with the types of their columns, which decide the state's layout."""
    events = graph.schema_of(node.input)
    return ", ".join(
        f"{named.aggregate.describe()} AS {named.name}{_type(named.aggregate.column, events)}"
        for named in node.aggregates
    )


def _type(path: str | None, events: Schema) -> str:
    field = None if path is None else events.find(path)
    return "" if field is None else f" of {type_to_ddl(field.type)}"
