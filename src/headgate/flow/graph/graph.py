"""The graph of a flow, as the rest of Headgate reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.errors import HeadgateError
from headgate.flow.graph.codec import node_from_json, node_to_json
from headgate.flow.graph.inference import output_schemas
from headgate.flow.json_values import (
    JsonObject,
    as_object,
    as_text,
    bad_json,
    get_list,
    get_object,
    get_text,
    get_value,
)
from headgate.flow.names import did_you_mean
from headgate.flow.operators.nodes import (
    Node,
    Output,
    Port,
    Process,
    Source,
    SourceKind,
    input_ports,
)
from headgate.flow.schemas.schema import Schema
from headgate.flow.topics import Topic, topic_from_json, topic_to_json

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Graph:
    """A flow as plain values: every node comes after its inputs.

    Reading a graph from JSON checks its shape only, so that graphs of older releases can be shown;
    `Flow.from_graph` checks the rest.

    Attributes:
        names: The names of operators for people, by uid. Graphs that differ only in them are equal.
    """

    name: str
    nodes: tuple[Node, ...]
    dead_letters: Topic
    names: Mapping[str, str] = field(default_factory=dict, compare=False)

    def node(self, node_id: str) -> Node:
        """Return the node with this id, or raise NODE_UNKNOWN."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise HeadgateError(
            "NODE_UNKNOWN",
            f"cannot find {node_id!r} in flow {self.name!r}: it has no such node",
            hint=did_you_mean(node_id, [node.id for node in self.nodes]),
        )

    def consumers(self, port: Port) -> tuple[Node, ...]:
        """Return the nodes that read from a port, in the graph's order."""
        return tuple(node for node in self.nodes if port in input_ports(node))

    def schema_of(self, port: Port) -> Schema:
        """Return the schema of the rows that leave by a port."""
        schemas = self.schemas()
        if port not in schemas:
            raise HeadgateError(
                "PORT_UNKNOWN",
                f"cannot find the schema of {str(port)!r} in flow {self.name!r}: it has no "
                "such output",
                hint=did_you_mean(str(port), map(str, schemas)),
            )
        return schemas[port]

    def schemas(self) -> dict[Port, Schema]:
        """Return the schema of every port."""
        known: dict[Port, Schema] = {}
        for node in self.nodes:
            known.update(output_schemas(node, known))
        return known

    def streams(self) -> tuple[Source, ...]:
        """Return the sources of events."""
        return self._sources(SourceKind.STREAM)

    def tables(self) -> tuple[Source, ...]:
        """Return the sources of tables."""
        return self._sources(SourceKind.TABLE)

    def outputs(self) -> tuple[Output, ...]:
        """Return the outputs, without the dead letters."""
        return tuple(node for node in self.nodes if isinstance(node, Output))

    def topics(self) -> tuple[Topic, ...]:
        """Return every topic that the flow reads or writes, dead letters last."""
        ends = [node.topic for node in self.nodes if isinstance(node, Source | Output)]
        return (*ends, self.dead_letters)

    def stateful(self) -> tuple[Node, ...]:
        """Return the operators with state, in the graph's order."""
        return tuple(node for node in self.nodes if node.stateful)

    def may_be_unused(self, port: Port) -> bool:
        """Return True for a side output, and for `out` of a process with a used side output."""
        node = self.node(port.node)
        if port.output in node.side_outputs:
            return True
        sides = node.side_outputs if isinstance(node, Process) else ()
        return any(self.consumers(Port(node.id, side)) for side in sides)

    def unused_outputs(self) -> tuple[Port, ...]:
        """Return the outputs whose rows are counted, not written."""
        ports = (Port(node.id, output) for node in self.nodes for output in node.outputs)
        unused = (port for port in ports if not self.consumers(port))
        return tuple(port for port in unused if self.may_be_unused(port))

    def to_json(self) -> str:
        """Return the graph as JSON text, the same for equal graphs."""
        holder: JsonObject = {
            "format": FORMAT,
            "name": self.name,
            "dead_letters": topic_to_json(self.dead_letters),
            "nodes": [node_to_json(node) for node in self.nodes],
        }
        if self.names:
            holder["names"] = dict(self.names)
        return json.dumps(holder, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """Return the graph that `to_json` wrote, equal to the one it was."""
        try:
            holder = as_object(json.loads(text), "it")
        except ValueError as cause:
            raise bad_json(f"it is not JSON ({cause})") from cause
        if get_value(holder, "format") != FORMAT:
            raise HeadgateError(
                "FLOW_FORMAT_UNSUPPORTED",
                f"cannot read the JSON of a flow: its format is {holder['format']!r}, and "
                f"this release reads {FORMAT}",
                hint="use the release of headgate that wrote it, or a newer one",
            )
        nodes = [as_object(value, "a node") for value in get_list(holder, "nodes")]
        return cls(
            get_text(holder, "name"),
            tuple(node_from_json(node) for node in nodes),
            topic_from_json(get_object(holder, "dead_letters")),
            {
                uid: as_text(name, f"the name of {uid!r}")
                for uid, name in as_object(holder.get("names", {}), "'names'").items()
            },
        )

    def _sources(self, kind: SourceKind) -> tuple[Source, ...]:
        return tuple(node for node in self.nodes if isinstance(node, Source) and node.kind is kind)
