"""From a flow's graph to the kernel's plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from headgate.connectors.registry import find_connector
from headgate.engine.plan.addresses import Addresses
from headgate.engine.plan.flow_plan import FlowPlan, Function
from headgate.engine.plan.formats import format_spec
from headgate.engine.plan.lines import lines_of
from headgate.engine.plan.operator_specs import (
    call_spec,
    dedupe_spec,
    find_millis,
    join_spec,
    label_spec,
    process_spec,
    right_spec,
    window_spec,
)
from headgate.engine.plan.routes import Routes
from headgate.engine.plan.spark_types import is_known, to_spark_json
from headgate.errors import HeadgateError
from headgate.flow.graph.ancestry import may_multiply, takes_copies, upstream_nodes
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    AsyncCall,
    Call,
    CallNode,
    CoProcess,
    Dedupe,
    Enrich,
    Filter,
    Join,
    Label,
    Node,
    OnError,
    Output,
    Port,
    Process,
    Rebalance,
    Source,
    Transform,
    Union,
    Window,
    label,
    stream_ports,
)
from headgate.flow.operators.windowing import EveryProcessingTime
from headgate.flow.schemas.schema import Schema
from headgate.flow.state.joins import known_columns
from headgate.flow.state.processes import state_schema
from headgate.functions.installed import check_source
from headgate.functions.stored import present_python


def plan_flow(
    graph: Graph,
    *,
    history: Mapping[str, Sequence[Schema]],
    max_record: int,
    placed_since: int = 0,
    job: str = "",
    parallelism: int = 1,
    in_memory: bool = False,
) -> FlowPlan:
    """Return the plan of a flow.

    Args:
        graph: A graph that `Flow.graph` has checked.
        history: Every schema that each table has had in this run, by source id, and the state of
            each process, by uid; the last is the current one. A missing one has had only its
            current schema.
        max_record: The size in bytes above which a record is a dead letter.
        placed_since: The first batch whose rows are placed by the current rules.
        job: The job's name in dead letters; empty for a flow that is only planned.
        parallelism: The number of tasks of each operator; each has all rows of a broadcast.
        in_memory: True if records are given and taken as they are, without the topics.
    """
    planner = _Planner(graph, history, in_memory=in_memory)
    settings = {"job": job, "maxRecord": max_record, "placedSince": placed_since}
    return planner.plan({**settings, "parallelism": parallelism})


def _replaces(output: Output) -> bool:
    """Return True if a row takes the place of the row with its key."""
    connector = find_connector(output.topic)
    return connector is not None and connector.spark.replaces(output.topic, output.key)


class _Planner:
    def __init__(
        self, graph: Graph, history: Mapping[str, Sequence[Schema]], *, in_memory: bool
    ) -> None:
        self.graph = graph
        self.in_memory = in_memory
        self.history = history
        self.schemas = graph.schemas()
        self.addresses = Addresses(graph)
        self.routes = Routes(graph, self.schemas, self.addresses, in_memory=in_memory)
        timed = any(isinstance(node, Window | Dedupe | Join | Process) for node in graph.nodes)
        streams = graph.streams() if timed else ()
        self.timed = tuple(stream for stream in streams if stream.event_time is not None)

    def plan(self, settings: Mapping[str, Any]) -> FlowPlan:
        nodes = self.graph.nodes
        spec = {
            **settings,
            "deadLetters": len(self.graph.outputs()),
            "sources": [self._source(node) for node in nodes if isinstance(node, Source)],
            "functions": [self._function(node) for node in nodes if isinstance(node, Transform)],
            "calls": [self._call(node) for node in nodes if isinstance(node, Call)],
            "operators": [self._operator(self.graph.node(step)) for step in self.addresses.steps],
            "unions": [self._union(node) for node in nodes if isinstance(node, Union)],
            "wakes": any(isinstance(node, Process) and node.timers for node in nodes),
        }
        functions = tuple(
            Function(node, self.addresses.functions[node.id], self._upstream(node))
            for node in nodes
            if isinstance(node, Transform)
        )
        return FlowPlan(
            self.graph,
            spec,
            tuple(self.addresses.operators),
            functions,
            self.addresses.destinations,
            self.timed,
            _find_nudge(self.graph),
            tuple(self.addresses.steps),
            frozenset(call["stage"] for call in spec["calls"]),
            any(_replaces(output) for output in self.graph.outputs()),
        )

    def _source(self, node: Source) -> dict[str, Any]:
        connector = find_connector(node.topic)
        return {
            "id": node.id,
            "topic": node.topic.name,
            "pattern": node.topic.pattern is not None,
            "kind": node.kind.value,
            "schema": to_spark_json(node.schema),
            "key": list(node.key),
            "version": node.version,
            "eventTime": node.event_time,
            "meta": node.meta,
            "format": format_spec(node),
            "lines": lines_of(node, in_memory=self.in_memory),
            "timed": node in self.timed,
            "partitioned": connector is None or connector.spark.IS_PARTITIONED,
            "timeUnit": node.event_time_unit.value,
            "outOfOrderness": find_millis(node.out_of_orderness),
            "idleAfter": find_millis(node.idle_after),
            "route": self.routes.of(Port(node.id, "out")),
            **self._record_options(node),
        }

    def _record_options(self, node: Source) -> dict[str, Any]:
        connector = find_connector(node.topic)
        if connector is None or self.in_memory:
            return {}
        return connector.spark.record_options(node.topic)

    def _function(self, node: Transform) -> dict[str, Any]:
        _check_function(node)
        return {
            "id": node.id,
            "address": self.addresses.functions[node.id],
            "schema": to_spark_json(node.schema) if is_known(node.schema) else None,
            "route": self.routes.of(Port(node.id, "out")),
        }

    def _call(self, node: CallNode) -> dict[str, Any]:
        _check_function(node)
        return {
            "id": node.id,
            "name": label(node),
            "kind": node.operator.replace("-", "_").upper(),
            "address": self.addresses.calls[node.id],
            "stage": self._stage(node),
            "columns": None if node.columns is None else list(node.columns),
            "schema": None if isinstance(node, Filter) else self._returned(node),
            "deadLetters": node.on_error is OnError.DEAD_LETTER,
            "code": node.function.code,
            "route": self.routes.of(Port(node.id, node.outputs[0])),
            **self._async(node),
        }

    def _async(self, node: CallNode) -> dict[str, Any]:
        if not isinstance(node, AsyncCall):
            return {}
        return {"call": {**call_spec(node), "failed": self.routes.of(Port(node.id, "failed"))}}

    def _returned(self, node: CallNode) -> dict[str, Any] | None:
        return to_spark_json(node.schema) if is_known(node.schema) else None

    def _stage(self, node: CallNode) -> int:
        """Return how many steps are before a function: those up to the last that feeds it.

        So rows of that step pass no other one on their way to the function.
        """
        above = upstream_nodes(self.graph.node, node)
        return max((self.addresses.steps.get(other.id, 0) for other in above), default=0)

    def _operator(self, node: Node) -> dict[str, Any]:
        match node:
            case Enrich():
                return self._enrich(node)
            case Window():
                return self._timed(node, {**window_spec(node), "copied": self._is_copied(node)})
            case Dedupe():
                return self._timed(node, dedupe_spec(node))
            case Join():
                return self._join(node)
            case Label():
                return self._label(node)
            case Process():
                return self._process(node)
            case Rebalance():
                return {
                    "kind": node.operator,
                    "id": node.id,
                    "address": self.addresses.of_rebalance(node),
                    "out": self.routes.of(Port(node.id, "out")),
                }
            case _:
                raise AssertionError(f"{label(node)} holds no state")

    def _enrich(self, node: Enrich) -> dict[str, Any]:
        present = self.schemas[Port(node.table, "out")]
        history = self.history.get(node.table, (present,))
        return {
            "kind": node.operator,
            "id": node.id,
            "address": self.addresses.operators[node.id],
            "table": node.table,
            "into": node.into,
            "history": [to_spark_json(schema) for schema in history],
            "matched": self.routes.of(Port(node.id, "matched")),
            "missing": self.routes.of(Port(node.id, "missing")),
        }

    def _timed(self, node: Window | Dedupe | Join, spec: dict[str, Any]) -> dict[str, Any]:
        routes = {output: self.routes.of(Port(node.id, output)) for output in node.outputs}
        return {**spec, "address": self.addresses.operators[node.id], **routes}

    def _join(self, node: Join) -> dict[str, Any]:
        history = self.history.get(node.id) or known_columns(node, self.schemas)
        spec = join_spec(node, history)
        address = self.addresses.of_other(node)
        return self._timed(node, {**spec, **self._shared(node), "rightAddress": address})

    def _shared(self, node: Join | Process) -> dict[str, Any]:
        """Return whether a record may come to both sides: the side tells its rows apart."""
        return {"shared": True} if takes_copies(self.graph.node, node) else {}

    def _label(self, node: Label) -> dict[str, Any]:
        return {
            **label_spec(node),
            **self._broadcast(node.table),
            "address": self.addresses.operators[node.id],
            "out": self.routes.of(Port(node.id, "out")),
        }

    def _broadcast(self, table: str | None) -> dict[str, Any]:
        """Return the table of which each task of an operator has all rows."""
        if table is None:
            return {}
        history = self.history.get(table, (self.schemas[Port(table, "out")],))
        return {"table": table, "tableHistory": [to_spark_json(schema) for schema in history]}

    def _process(self, node: Process) -> dict[str, Any]:
        _check_function(node)
        history = self.history.get(node.id, (state_schema(node),))
        ports = (Port(node.id, output) for output in node.outputs)
        other = self.addresses.of_other(node)
        return {
            **process_spec(node, history),
            **(right_spec(node, other) if isinstance(node, CoProcess) else {}),
            **self._broadcast(node.table),
            **self._shared(node),
            "address": self.addresses.operators[node.id],
            "outputs": [
                {
                    "port": port.output,
                    "schema": to_spark_json(self.schemas[port]),
                    "route": self.routes.of(port),
                }
                for port in ports
            ],
        }

    def _union(self, node: Union) -> dict[str, Any]:
        return {
            "id": node.id,
            "name": label(node),
            "columns": list(self.schemas[Port(node.id, "out")].names),
            "route": self.routes.of(Port(node.id, "out")),
        }

    def _is_copied(self, node: Window) -> bool:
        """Return True if several rows of an operator may be made of one record."""
        find = self.graph.node
        return any(may_multiply(find, above) for above in upstream_nodes(find, node))

    def _upstream(self, node: Node) -> tuple[str, ...]:
        """Return the sources and functions whose rows reach a node through no other function."""
        parts: dict[str, None] = {}
        for port in stream_ports(node):
            above = self.graph.node(port.node)
            is_part = isinstance(above, Source | Transform)
            parts.update(dict.fromkeys((above.id,) if is_part else self._upstream(above)))
        return tuple(parts)


def _check_function(node: CallNode | Process | Transform) -> None:
    """Refuse a function that another version of Python or of its package has stored."""
    stored = node.stored if isinstance(node, Transform) else node.function
    if stored is None:
        return
    if stored.source:
        module = stored.name.partition(":")[0]
        check_source(module, stored.source, what=f"cannot plan {label(node)}")
    if stored.python != present_python():
        raise HeadgateError(
            "FUNCTION_OTHER_PYTHON",
            f"cannot plan {label(node)}: {stored.name} was stored by Python {stored.python}, and "
            f"this is Python {present_python()}",
            hint=f"run it with Python {stored.python}, or start the job from its flow's file",
        )


def _find_nudge(graph: Graph) -> timedelta | None:
    """Return the interval at which a quiet flow checks for results due by the clock."""
    windows = (node for node in graph.nodes if isinstance(node, Window))
    triggers = (trigger for node in windows for trigger in node.early)
    return min(
        (trigger.every for trigger in triggers if isinstance(trigger, EveryProcessingTime)),
        default=None,
    )
