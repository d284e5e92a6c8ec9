"""Walks from a node of a graph towards its sources.

Rows of a node come through its stream ports. Rows of a table are looked up, so no walk goes through
a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headgate.flow.operators.nodes import (
    Node,
    Port,
    Rebalance,
    Source,
    Union,
    input_ports,
    stream_ports,
)

# Returns the node with an id: `graph.node`, or `nodes.__getitem__` while a flow is built.
Find = Callable[[str], Node]


def feeds_table(port: Port, node: Node) -> bool:
    """Return True if a node looks up a port's rows as its table, and takes other rows as events."""
    return port in input_ports(node) and port not in stream_ports(node)


def upstream_ports(find: Find, node: Node) -> Iterator[Port]:
    """Yield each port that a node's rows come through, nearest first, each once."""
    seen: set[Port] = set()
    waiting = list(stream_ports(node))
    while waiting:
        port = waiting.pop(0)
        if port not in seen:
            seen.add(port)
            yield port
            waiting += stream_ports(find(port.node))


def upstream_nodes(find: Find, node: Node) -> Iterator[Node]:
    """Yield each node that a node's rows come through, nearest first, each once."""
    seen: set[str] = set()
    for port in upstream_ports(find, node):
        if port.node not in seen:
            seen.add(port.node)
            yield find(port.node)


def sources_of(find: Find, node: Node) -> tuple[Source, ...]:
    """Return the sources of a node's rows, nearest first; of a source itself, that source."""
    if isinstance(node, Source):
        return (node,)
    return tuple(above for above in upstream_nodes(find, node) if isinstance(above, Source))


def merges_copies(find: Find, node: Node) -> bool:
    """Tell whether a node is a union that may take one record by several ways."""
    return isinstance(node, Union) and takes_copies(find, node)


def takes_copies(find: Find, node: Node) -> bool:
    """Tell whether one record may come to a node through several of its stream ports."""
    ports = stream_ports(node)
    sources = [source.id for port in ports for source in sources_of(find, find(port.node))]
    return len(set(sources)) < len(sources)


def may_multiply(find: Find, node: Node) -> bool:
    """Tell whether a node may pass on several rows of one record, each with a number of its own."""
    return node.multiplies or merges_copies(find, node)


def count_multipliers(find: Find, node: Node) -> int:
    """Return how many operators on one way to a node, with itself, may make several rows of one.

    Several ways may lead there: the one with the most such operators counts.
    """
    counts: dict[str, int] = {}

    def count(node: Node) -> int:
        if node.id not in counts:
            above = (count(find(port.node)) for port in stream_ports(node))
            counts[node.id] = may_multiply(find, node) + max(above, default=0)
        return counts[node.id]

    return count(node)


def is_spread(find: Find, port: Port) -> bool:
    """Tell whether a rebalance has spread all rows of a port, and none of them has an order."""
    node = find(port.node)
    if node.stateful or isinstance(node, Rebalance):
        return isinstance(node, Rebalance)
    above = stream_ports(node)
    return bool(above) and all(is_spread(find, each) for each in above)


def is_of_side_output(find: Find, port: Port, *, through_state: bool = False) -> bool:
    """Tell whether all rows of a port come from side outputs, maybe through other steps.

    Args:
        through_state: Whether those steps may have state.
    """
    node = find(port.node)
    if port.output in node.side_outputs:
        return True
    above = () if node.stateful and not through_state else stream_ports(node)
    sides = [is_of_side_output(find, other, through_state=through_state) for other in above]
    return bool(sides) and all(sides)
