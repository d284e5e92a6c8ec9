"""Whether state that one flow's operator wrote can be read by another's."""

from __future__ import annotations

from headgate.flow.graph import Graph
from headgate.flow.operators import Dedupe, Enrich, Node, Window
from headgate.flow.schema import Schema, key_kind, type_to_ddl


def find_state_change(old: Graph, new: Graph, uid: str) -> str | None:
    """Return what an operator's state is of and what it is given now, or None where they fit.

    Early results, lateness and how long `dedupe` remembers may change: state does not hold them.
    What tables look like is compared elsewhere, with every schema they have had.
    """
    before, now = old.node(uid), new.node(uid)
    found, wanted = _shape(before, old), _shape(now, new)
    if found == wanted:
        return None
    return f"holds {found}, and the flow gives it {wanted}"


def _shape(node: Node, graph: Graph) -> str:
    match node:
        case Enrich(table=table):
            return f"rows of table {table!r}"
        case Window():
            keyed = f" by {_keys(node.key, node, graph)}" if node.key else ""
            return f"{node.windows.describe()} windows{keyed} of {_figures(node, graph)}"
        case Dedupe(by=by):
            return f"what was seen by {_keys(by, node, graph)}"
        case _:
            return "no state"


def _keys(paths: tuple[str, ...], node: Window | Dedupe, graph: Graph) -> str:
    """Return the key's columns with their kinds, which say how its text is read."""
    events = graph.schema_of(node.input)
    found = [(path, events.find(path)) for path in paths]
    return ", ".join(
        path if each is None else f"{path} ({key_kind(each.type)})" for path, each in found
    )


def _figures(node: Window, graph: Graph) -> str:
    """Return the figures with the types of their columns, which say what state looks like."""
    events = graph.schema_of(node.input)
    return ", ".join(
        f"{each.aggregate.describe()} AS {each.name}{_type(each.aggregate.column, events)}"
        for each in node.aggregates
    )


def _type(path: str | None, events: Schema) -> str:
    found = None if path is None else events.find(path)
    return "" if found is None else f" of {type_to_ddl(found.type)}"
