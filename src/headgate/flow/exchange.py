"""The edges of a graph: how rows get from one node to the next."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from headgate.flow.graph import Graph
from headgate.flow.operators import Dedupe, Enrich, Node, Port, Process, Source, Window, input_ports


class Exchange(enum.StrEnum):
    """How an edge distributes rows."""

    FORWARD = "forward"
    HASH = "hash"
    REBALANCE = "rebalance"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows from a port to a node; `by` holds the hash columns."""

    source: Port
    target: str
    exchange: Exchange
    by: tuple[str, ...]

    def describe(self) -> str:
        """Return the exchange in words: `forward`, `hash by userId`."""
        return f"{self.exchange.value} by {', '.join(self.by)}" if self.by else self.exchange.value


def edges_of(graph: Graph) -> tuple[Edge, ...]:
    """Return every edge of a graph, ordered by target node."""
    return tuple(_edge(port, node, graph) for node in graph.nodes for port in input_ports(node))


def _edge(port: Port, node: Node, graph: Graph) -> Edge:
    if isinstance(node, Window | Process):
        return Edge(port, node.id, Exchange.HASH, node.key)
    if isinstance(node, Dedupe):
        return Edge(port, node.id, Exchange.HASH, node.by)
    if not isinstance(node, Enrich):
        return Edge(port, node.id, Exchange.FORWARD, ())
    if port == node.input:
        return Edge(port, node.id, Exchange.HASH, node.on)
    table = graph.node(node.table)
    by = table.key if isinstance(table, Source) else ()
    return Edge(port, node.id, Exchange.HASH, by)
