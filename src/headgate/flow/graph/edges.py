"""The edges of a graph: how rows get from one node to the next."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from headgate.flow.graph.ancestry import feeds_table
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    CoProcess,
    Dedupe,
    Enrich,
    Join,
    Label,
    Node,
    Port,
    Process,
    Rebalance,
    Source,
    Window,
    broadcast_of,
    input_ports,
)


class Exchange(enum.StrEnum):
    """How an edge distributes rows."""

    FORWARD = "forward"
    KEY_BY = "key_by"
    REBALANCE = "rebalance"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows from a port to a node; `by` holds the columns of the key."""

    source: Port
    target: str
    exchange: Exchange
    by: tuple[str, ...]

    def describe(self) -> str:
        """Return the exchange in words: `forward`, `key_by userId`, `key_by ()` without columns."""
        if self.exchange is not Exchange.KEY_BY:
            return self.exchange.value
        return f"{self.exchange.value} {', '.join(self.by) or '()'}"


def edges_of(graph: Graph) -> tuple[Edge, ...]:
    """Return every edge of a graph, ordered by target node."""
    return tuple(_edge(port, node, graph) for node in graph.nodes for port in input_ports(node))


def _edge(port: Port, node: Node, graph: Graph) -> Edge:
    if feeds_table(port, node):
        if broadcast_of(node) is not None:
            return Edge(port, node.id, Exchange.BROADCAST, ())
        table = graph.node(port.node)
        by = table.key if isinstance(table, Source) else ()
        return Edge(port, node.id, Exchange.KEY_BY, by)
    match node:
        case (
            Join(input=left, on=on, right_on=other) | CoProcess(input=left, key=on, right_key=other)
        ):
            return Edge(port, node.id, Exchange.KEY_BY, on if port == left else other)
        case Process(key=()) | Label():
            return Edge(port, node.id, Exchange.REBALANCE, ())
        case Window(key=by) | Process(key=by) | Dedupe(by=by) | Enrich(on=by):
            return Edge(port, node.id, Exchange.KEY_BY, by)
        case Rebalance():
            return Edge(port, node.id, Exchange.REBALANCE, ())
        case _:
            return Edge(port, node.id, Exchange.FORWARD, ())
