"""The addresses of operators, functions and outputs in the kernel's plan."""

from __future__ import annotations

from headgate.engine.plan.flow_plan import Destination
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    Call,
    Node,
    Output,
    Port,
    Rebalance,
    Transform,
)

# Operators and functions share one 16-bit address space; outputs have their own.
_FIRST_FUNCTION = 1000
_FIRST_CALL = 2000
# The rows of the second input of the stateful operator with address N have address
# _FIRST_OTHER + N, since they may have other columns.
_FIRST_OTHER = 3000
_FIRST_REBALANCE = 5000


class Addresses:
    """Numbers of the parts of a flow.

    Attributes:
        operators: The stateful operators by id, from 1 on, in the order rows pass through them.
        steps: The same with the rebalances between them.
        functions: The DataFrame functions by id.
        calls: The Python functions by id.
        destinations: Every exit, by address.
    """

    def __init__(self, graph: Graph) -> None:
        self.operators = {node.id: i + 1 for i, node in enumerate(graph.stateful())}
        steps = [node for node in graph.nodes if node.stateful or isinstance(node, Rebalance)]
        self.steps = {node.id: i + 1 for i, node in enumerate(steps)}
        transforms = [node for node in graph.nodes if isinstance(node, Transform)]
        self.functions = {node.id: _FIRST_FUNCTION + i for i, node in enumerate(transforms)}
        calls = [node for node in graph.nodes if isinstance(node, Call)]
        self.calls = {node.id: _FIRST_CALL + i for i, node in enumerate(calls)}
        self.destinations = (
            *(Destination(node.id, node.topic) for node in graph.outputs()),
            Destination(graph.dead_letters.name, graph.dead_letters),
            *(Destination(str(port), None) for port in graph.unused_outputs()),
        )
        self._exits = {exit_.id: i for i, exit_ in enumerate(self.destinations)}

    def of_output(self, node: Output) -> int:
        """Return the address of an output."""
        return self._exits[node.id]

    def find_unused(self, port: Port) -> int | None:
        """Return the address of a port whose rows are only counted, or None."""
        return self._exits.get(str(port))

    def of_rebalance(self, node: Rebalance) -> int:
        """Return the address of a rebalance."""
        return _FIRST_REBALANCE + self.steps[node.id]

    def of_other(self, node: Node) -> int:
        """Return the address of the rows of an operator's second input."""
        return _FIRST_OTHER + self.operators[node.id]
