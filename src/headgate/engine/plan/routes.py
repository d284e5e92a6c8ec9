"""Routes: what happens to the rows of a port, from step to step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.connectors.registry import find_connector
from headgate.engine.plan.addresses import Addresses
from headgate.engine.plan.formats import format_spec
from headgate.engine.plan.lines import lines_of
from headgate.engine.plan.operator_specs import path_of
from headgate.flow.graph.ancestry import feeds_table, is_spread, merges_copies
from headgate.flow.graph.graph import Graph
from headgate.flow.names import split_path
from headgate.flow.operators.nodes import (
    Call,
    CoProcess,
    Dedupe,
    Enrich,
    Join,
    Label,
    Node,
    Output,
    Port,
    Process,
    Rebalance,
    Select,
    Source,
    Transform,
    Union,
    Where,
    Window,
    WithColumns,
    label,
)
from headgate.flow.schemas.schema import Schema, Struct

# A call of a process has all keys of a bucket: fewer buckets are larger batches for its worker.
_PROCESS_BUCKETS = 128


class Routes:
    """The steps behind each port of a flow."""

    def __init__(
        self,
        graph: Graph,
        schemas: Mapping[Port, Schema],
        addresses: Addresses,
        *,
        in_memory: bool,
    ) -> None:
        self.graph = graph
        self.in_memory = in_memory
        self.schemas = schemas
        self.addresses = addresses

    def of(self, port: Port) -> list[dict[str, Any]]:
        """Return the steps of the rows of a port."""
        takers = [node for node in self.graph.consumers(port) if not feeds_table(port, node)]
        unused = self.addresses.find_unused(port)
        if not takers and unused is not None:
            return [{"step": "count", "address": unused}]
        return [step for node in takers for step in self._steps(node, port)]

    def _steps(self, node: Node, port: Port) -> list[dict[str, Any]]:
        match node:
            case Where():
                then = self.of(Port(node.id, "out"))
                return [
                    {
                        "step": "where",
                        "id": node.id,
                        "name": label(node),
                        "condition": node.condition,
                        "then": then,
                    }
                ]
            case Select():
                return self._select(node)
            case WithColumns():
                return [self._compute(node, keep=True)]
            case Transform():
                return [{"step": "function", "address": self.addresses.functions[node.id]}]
            case Call():
                return [{"step": "function", "address": self.addresses.calls[node.id]}]
            case CoProcess():
                step = self._side_step(node, port, node.key, node.right_key)
                return [{**step, "buckets": _PROCESS_BUCKETS}]
            case Label() | Process(key=()):
                return [self._keyless_step(node)]
            case Enrich(on=on) | Window(key=on) | Dedupe(by=on) | Process(key=on):
                buckets = {"buckets": _PROCESS_BUCKETS} if isinstance(node, Process) else {}
                return [
                    {
                        "step": "operator",
                        "name": label(node),
                        "address": self.addresses.operators[node.id],
                        "on": [path_of(path) for path in on],
                        **buckets,
                    }
                ]
            case Join():
                return [self._side_step(node, port, node.on, node.right_on)]
            case Union():
                return [self._union_step(node, port)]
            case Rebalance():
                return [{"step": "rebalance", "address": self.addresses.of_rebalance(node)}]
            case Output():
                return [self._output(node, None, path_of(node.key))]
            case Source():
                return []

    def _keyless_step(self, node: Label | Process) -> dict[str, Any]:
        keyed = isinstance(node, Process)
        return {
            "step": "operator",
            "name": label(node),
            "address": self.addresses.operators[node.id],
            "on": [],
            "broadcast": True,
            "keyed": keyed,
            "spreads": is_spread(self.graph.node, node.input),
            **({"buckets": _PROCESS_BUCKETS} if keyed else {}),
        }

    def _side_step(
        self, node: Join | CoProcess, port: Port, left: Sequence[str], right: Sequence[str]
    ) -> dict[str, Any]:
        """Return the step to an operator of two streams, whose keys are given."""
        is_left, of_left = port == node.input, self.addresses.operators[node.id]
        return {
            "step": "operator",
            "name": label(node),
            "address": of_left if is_left else self.addresses.of_other(node),
            "on": [path_of(path) for path in (left if is_left else right)],
            "side": "left" if is_left else "right",
        }

    def _select(self, node: Select) -> list[dict[str, Any]]:
        """Return the step of a select, or of its outputs, which select plain columns themselves."""
        takers = self.graph.consumers(Port(node.id, "out"))
        schema = self.schemas[node.input]
        paths = [_struct_path(schema, column.expression) for column in node.columns]
        if all(isinstance(taker, Output) for taker in takers) and all(paths):
            columns = [
                {"name": column.name, "path": path}
                for column, path in zip(node.columns, paths, strict=True)
            ]
            return [
                self._output(taker, columns, _key_below(taker.key, columns))
                for taker in takers
                if isinstance(taker, Output)
            ]
        return [self._compute(node, keep=False)]

    def _compute(self, node: Select | WithColumns, *, keep: bool) -> dict[str, Any]:
        return {
            "step": "compute",
            "id": node.id,
            "name": label(node),
            "keep": keep,
            "columns": [{"name": c.name, "expression": c.expression} for c in node.columns],
            "then": self.of(Port(node.id, "out")),
        }

    def _output(
        self, node: Output, columns: list[dict[str, Any]] | None, key: list[str] | None
    ) -> dict[str, Any]:
        return {
            "step": "output",
            "id": node.id,
            "name": label(node),
            "address": self.addresses.of_output(node),
            "columns": columns,
            "key": key,
            "format": format_spec(node),
            "lines": lines_of(node, in_memory=self.in_memory),
            "folder": None if self.in_memory else _find_file_spec(node),
        }

    def _union_step(self, node: Union, port: Port) -> dict[str, Any]:
        """Return the step into a union; its place tells the copies of one record apart."""
        is_copied = merges_copies(self.graph.node, node)
        place = node.inputs.index(port) if is_copied else None
        return {"step": "union", "id": node.id, "from": str(port), "place": place}


def _find_file_spec(node: Output) -> dict[str, object] | None:
    connector = find_connector(node.topic)
    return None if connector is None else connector.spark.file_spec(node.topic)


def _key_below(column: str | None, columns: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the path of the key in the rows from which columns are selected."""
    path = path_of(column)
    if path is None:
        return None
    picked = next(other["path"] for other in columns if other["name"] == path[0])
    return [*picked, *path[1:]]


def _struct_path(schema: Schema, expression: str) -> list[str] | None:
    """Return the names on the path to a column or nested field, or None."""
    parts = split_path(expression)
    if parts is None:
        return None
    fields = schema.fields
    for place, part in enumerate(parts):
        step = next((field for field in fields if field.name == part), None)
        if step is None:
            return None
        if place + 1 < len(parts):
            if not isinstance(step.type, Struct):
                return None
            fields = step.type.fields
    return list(parts)
