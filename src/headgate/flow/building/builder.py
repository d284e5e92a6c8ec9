"""The graph under construction: each node is checked against the nodes before it, then added."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace

from headgate.errors import HeadgateError
from headgate.flow.checks.nodes import check_node
from headgate.flow.graph.inference import output_schemas
from headgate.flow.names import check_flow_name, check_label
from headgate.flow.operators.nodes import (
    Call,
    Node,
    Output,
    Port,
    Process,
    Source,
    Transform,
    label,
    stream_ports,
)
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic
from headgate.functions.stored import Callback, ProcessCallback, StoredFunction, store


class Builder:
    """Holds the nodes of a flow in the order they were declared, which is topological."""

    def __init__(self, name: str, dead_letters: Topic) -> None:
        self.name = check_flow_name(name)
        self.dead_letters = dead_letters
        self.nodes: dict[str, Node] = {}
        self.schemas: dict[Port, Schema] = {}
        self.callbacks: dict[str, Callback | ProcessCallback] = {}
        # The names of operators for people, by uid.
        self.names: dict[str, str] = {}

    def add(self, *nodes: Node, name: str | None = None) -> None:
        """Add nodes; a refused node leaves the builder unchanged.

        Args:
            name: How people call the last one.
        """
        if name is not None:
            check_label(name, what=self.cannot_add(label(nodes[-1])))
        before = dict(self.nodes), dict(self.schemas)
        try:
            for node in nodes:
                self._add(node)
        except HeadgateError:
            self.nodes, self.schemas = before
            raise
        if name is not None:
            self.names[nodes[-1].id] = name

    def _add(self, node: Node) -> None:
        what = self.cannot_add(label(node))
        other = self.nodes.get(node.id)
        if isinstance(other, Output) and not isinstance(node, Output | Source):
            self._rename(other)
        elif other is not None:
            raise _taken(node, other, what)
        check_node(node, self.nodes, self.schemas, what=what)
        self.schemas.update(output_schemas(node, self.schemas))
        self.nodes[node.id] = node

    def extend(self, node: Process) -> None:
        """Replace a process by one with further side outputs; a refused one changes nothing."""
        what = f"cannot extend {label(node)} of flow {self.name!r}"
        check_node(node, self.nodes, self.schemas, what=what)
        self.schemas.update(output_schemas(node, self.schemas))
        self.nodes[node.id] = node

    def finished_nodes(self) -> tuple[Node, ...]:
        """Return the nodes, with the code of their functions.

        Functions are stored now, and not when they are declared: they may use names that the
        flow's file defines later.
        """
        return tuple(map(self._finished, self.nodes.values()))

    def _finished(self, node: Node) -> Node:
        callback = self.callbacks.get(node.id)
        if callback is None:
            return node
        what = self.cannot_add(label(node))
        match node:
            case Call() | Process():
                return replace(node, function=store(callback, node.function, what=what))
            case Transform(stored=StoredFunction() as stored):
                return replace(node, stored=store(callback, stored, what=what))
        return node

    def cannot_add(self, what: str) -> str:
        """Return the opening words of a refusal to add `what`."""
        return f"cannot add {what} to flow {self.name!r}"

    def free_id(self, port: Port, operator: str, *, besides: Collection[str] = ()) -> str:
        """Return a readable id for a stateless operator on `port`, the same on every build.

        It is derived from the source or the stateful output that the rows come from.

        Args:
            besides: Ids of operators that are not added yet.
        """
        origin = self._origin(port)
        number = 1
        while (free := f"{origin}.{operator}-{number}") in self.nodes or free in besides:
            number += 1
        return free

    def output_id(self, topic: str) -> str:
        """Return the id of the output to a topic: its name, unless an operator has that uid.

        A name that a source or an output of the same topic has is returned too: `add` refuses it.
        """
        return next(
            output_id
            for output_id in _output_ids(topic)
            if (node := self.nodes.get(output_id)) is None
            or (isinstance(node, Source) and output_id == topic)
            or (isinstance(node, Output) and node.topic.name == topic)
        )

    def _rename(self, output: Output) -> None:
        """Give another id to an output whose id is the uid of a new operator, which keeps it."""
        free = next(
            output_id for output_id in _output_ids(output.topic.name) if output_id not in self.nodes
        )
        self.nodes = {
            node.id: node
            for node in (
                replace(output, id=free) if node is output else node for node in self.nodes.values()
            )
        }

    def _origin(self, port: Port) -> Port:
        node = self.nodes[port.node]
        while not node.stateful and len(above := stream_ports(node)) == 1:
            (port,) = above
            node = self.nodes[port.node]
        return port


def _output_ids(topic: str) -> Iterator[str]:
    """Yield the possible ids of an output, the best first."""
    yield topic
    yield f"{topic}.output"
    for number in itertools.count(2):
        yield f"{topic}.output-{number}"


def _taken(node: Node, other: Node, what: str) -> HeadgateError:
    if isinstance(node, Output) and isinstance(other, Output):
        return HeadgateError(
            "DUPLICATE_OUTPUT",
            f"{what}: {str(other.input)!r} is already written to {other.topic.describe()}",
            hint=f"choose another topic: .to('{node.topic.name}-2')",
        )
    if isinstance(node, Source):
        hint = f"set uid='{node.id}-2' on one of them"
    elif isinstance(node, Output):
        hint = f"write to another topic, or rename {label(other)}"
    else:
        hint = "give each operator its own uid; a copied line keeps the uid of the original"
    return HeadgateError("DUPLICATE_UID", f"{what}: {label(other)} already has that uid", hint=hint)
