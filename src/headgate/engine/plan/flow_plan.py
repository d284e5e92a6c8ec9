"""A flow as the kernel compiles it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate.connectors.registry import find_connector
from headgate.engine.plan.operator_specs import path_of as path_of
from headgate.flow.graph.ancestry import upstream_nodes
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    Call,
    Output,
    Rebalance,
    Source,
    Transform,
    stream_ports,
)
from headgate.flow.topics import Topic


@dataclass(frozen=True, slots=True)
class Destination:
    """An exit of the flow; its index in the list is its address.

    Attributes:
        id: The output's name, `dead-letters`, or `operator.port` of an unused output: `operator`
            alone for its `out`.
        topic: None if rows are counted and not written.
    """

    id: str
    topic: Topic | None


@dataclass(frozen=True, slots=True)
class Function:
    """A DataFrame function of the user.

    Attributes:
        upstream: The sources, and the functions before it, that provide its rows.
    """

    node: Transform
    address: int
    upstream: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """A flow as the kernel compiles it.

    Attributes:
        spec: The kernel's plan, as JSON values.
        operators: The uids of the stateful operators, in the order rows pass through them.
        steps: The same with the rebalances between them, by id.
        functions: In the order they are applied.
        call_stages: How many of these steps are before each stage of Python functions.
        destinations: Every exit, by address.
        timed: The streams whose events move the flow's watermark; empty if no operator uses event
            time.
        by_key: True if one task must have all rows of a message key when they are written.
        nudge: The interval at which a quiet flow checks for results due by the clock.
    """

    graph: Graph
    spec: dict[str, Any]
    operators: tuple[str, ...]
    functions: tuple[Function, ...]
    destinations: tuple[Destination, ...]
    timed: tuple[Source, ...] = ()
    nudge: timedelta | None = None
    steps: tuple[str, ...] = ()
    call_stages: frozenset[int] = frozenset()
    by_key: bool = False

    def scans(self) -> dict[str, int]:
        """Return how often a batch reads each source: once, and once more per function."""
        # Of each part of the query: how often it reads which sources.
        reads = {node.id: {node.id: 1} for node in self.graph.nodes if isinstance(node, Source)}
        sources = tuple(reads)
        for function in self.functions:
            made: dict[str, int] = {}
            for part in function.upstream:
                for source, times in reads[part].items():
                    made[source] = made.get(source, 0) + times
            reads[function.node.id] = made
        return {source: sum(part.get(source, 0) for part in reads.values()) for source in sources}

    def repeats(self) -> dict[str, int]:
        """Return how often a batch computes the rows of a node, if more than once.

        Each function reads its input again, through all the steps before it. For an operator, this
        counts the rows that cannot go there: they are computed upstream.
        """
        counts: dict[str, int] = {}
        for function in self.functions:
            for above in upstream_nodes(self.graph.node, function.node):
                counts[above.id] = counts.get(above.id, 1) + 1
        return self._with_siblings(counts)

    def _with_siblings(self, counts: dict[str, int]) -> dict[str, int]:
        """Include the steps beside those that lead to a function: one task computes all of them.

        A step belongs to the source or function that provides its first input.
        """
        for node in self.graph.nodes:
            if not isinstance(node, Source | Transform | Call | Rebalance | Output):
                above = [self.graph.node(port.node) for port in stream_ports(node)]
                repeated = [counts[n.id] for n in above if not n.stateful and n.id in counts]
                if repeated:
                    counts[node.id] = max(repeated)
        return counts


def kernel_modules(graph: Graph) -> tuple[str, ...]:
    """Return the kernel modules and the stores that a flow's topics need."""
    connectors = ((find_connector(topic), topic) for topic in graph.topics())
    return tuple(
        sorted(
            {
                module
                for connector, topic in connectors
                if connector is not None
                for module in connector.spark.modules(topic)
            }
        )
    )


def source_name(source_id: str) -> str:
    """Return the name of a source in Spark's checkpoint: letters, digits and underscores only.

    Other characters become their code between underscores, so ids never collide.
    """
    return "".join(
        char if char.isascii() and char.isalnum() else f"_{ord(char):x}_" for char in source_id
    )
