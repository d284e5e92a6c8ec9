"""From a flow's graph to the kernel's plan: addresses, routes and outputs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate._kernel.connector_jars import CONNECTORS
from headgate.connectors.registry import find_connector
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
from headgate.engine.plan.operator_specs import path_of as path_of
from headgate.engine.plan.spark_types import is_known, to_spark_json
from headgate.errors import HeadgateError
from headgate.flow.graph.ancestry import feeds_table, may_multiply, merges_copies, upstream_nodes
from headgate.flow.graph.graph import Graph
from headgate.flow.names import split_path
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
    Select,
    Source,
    Transform,
    Union,
    Where,
    Window,
    WithColumns,
    label,
    stream_ports,
)
from headgate.flow.operators.windowing import EveryProcessingTime
from headgate.flow.schemas.schema import Schema, Struct
from headgate.flow.state.joins import known_columns
from headgate.flow.state.processes import state_schema
from headgate.flow.topics import Topic
from headgate.functions.installed import check_source
from headgate.functions.stored import present_python

# Operators and functions share one 16-bit address space; outputs have their own.
_FIRST_FUNCTION = 1000
_FIRST_CALL = 2000
# The rows of the second input of the stateful operator with address N have address
# _FIRST_OTHER + N, since they may have other columns.
_FIRST_OTHER = 3000
_FIRST_REBALANCE = 5000
# A call of a process has all keys of a bucket: fewer buckets are larger batches for its worker.
_PROCESS_BUCKETS = 128


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
    """Return the kernel modules that a flow's topics need."""
    kinds = {topic.kind for topic in graph.topics()}
    return tuple(sorted(kinds & CONNECTORS.keys()))


def source_name(source_id: str) -> str:
    """Return the name of a source in Spark's checkpoint: letters, digits and underscores only.

    Other characters become their code between underscores, so ids never collide.
    """
    return "".join(
        char if char.isascii() and char.isalnum() else f"_{ord(char):x}_" for char in source_id
    )


def plan_flow(
    graph: Graph,
    *,
    history: Mapping[str, Sequence[Schema]],
    max_record: int,
    placed_since: int = 0,
    job: str = "",
    parallelism: int = 1,
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
    """
    planner = _Planner(graph, history)
    settings = {"job": job, "maxRecord": max_record, "placedSince": placed_since}
    return planner.plan({**settings, "parallelism": parallelism})


class _Planner:
    def __init__(self, graph: Graph, history: Mapping[str, Sequence[Schema]]) -> None:
        self.graph = graph
        self.history = history
        self.schemas = graph.schemas()
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
        self.addresses = {exit_.id: i for i, exit_ in enumerate(self.destinations)}
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
            "operators": [self._operator(self.graph.node(step)) for step in self.steps],
            "unions": [self._union(node) for node in nodes if isinstance(node, Union)],
            "wakes": any(isinstance(node, Process) and node.timers for node in nodes),
        }
        functions = tuple(
            Function(node, self.functions[node.id], self._upstream(node))
            for node in nodes
            if isinstance(node, Transform)
        )
        return FlowPlan(
            self.graph,
            spec,
            tuple(self.operators),
            functions,
            self.destinations,
            self.timed,
            _find_nudge(self.graph),
            tuple(self.steps),
            frozenset(call["stage"] for call in spec["calls"]),
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
            "timed": node in self.timed,
            "partitioned": connector is None or connector.spark.IS_PARTITIONED,
            "timeUnit": node.event_time_unit.value,
            "outOfOrderness": find_millis(node.out_of_orderness),
            "idleAfter": find_millis(node.idle_after),
            "route": self._route(Port(node.id, "out")),
        }

    def _function(self, node: Transform) -> dict[str, Any]:
        _check_function(node)
        return {
            "id": node.id,
            "address": self.functions[node.id],
            "schema": to_spark_json(node.schema) if is_known(node.schema) else None,
            "route": self._route(Port(node.id, "out")),
        }

    def _call(self, node: CallNode) -> dict[str, Any]:
        _check_function(node)
        return {
            "id": node.id,
            "name": label(node),
            "kind": node.operator.replace("-", "_").upper(),
            "address": self.calls[node.id],
            "stage": self._stage(node),
            "columns": None if node.columns is None else list(node.columns),
            "schema": None if isinstance(node, Filter) else self._returned(node),
            "deadLetters": node.on_error is OnError.DEAD_LETTER,
            "code": node.function.code,
            "route": self._route(Port(node.id, node.outputs[0])),
            **self._async(node),
        }

    def _async(self, node: CallNode) -> dict[str, Any]:
        if not isinstance(node, AsyncCall):
            return {}
        return {"call": {**call_spec(node), "failed": self._route(Port(node.id, "failed"))}}

    def _returned(self, node: CallNode) -> dict[str, Any] | None:
        return to_spark_json(node.schema) if is_known(node.schema) else None

    def _stage(self, node: CallNode) -> int:
        """Return how many steps are before a function: those up to the last that feeds it.

        So rows of that step pass no other one on their way to the function.
        """
        above = upstream_nodes(self.graph.node, node)
        return max((self.steps.get(other.id, 0) for other in above), default=0)

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
                    "address": self._rebalance_address(node),
                    "out": self._route(Port(node.id, "out")),
                }
            case _:
                raise AssertionError(f"{label(node)} holds no state")

    def _rebalance_address(self, node: Rebalance) -> int:
        return _FIRST_REBALANCE + self.steps[node.id]

    def _enrich(self, node: Enrich) -> dict[str, Any]:
        present = self.schemas[Port(node.table, "out")]
        history = self.history.get(node.table, (present,))
        return {
            "kind": node.operator,
            "id": node.id,
            "address": self.operators[node.id],
            "table": node.table,
            "into": node.into,
            "history": [to_spark_json(schema) for schema in history],
            "matched": self._route(Port(node.id, "matched")),
            "missing": self._route(Port(node.id, "missing")),
        }

    def _timed(self, node: Window | Dedupe | Join, spec: dict[str, Any]) -> dict[str, Any]:
        routes = {output: self._route(Port(node.id, output)) for output in node.outputs}
        return {**spec, "address": self.operators[node.id], **routes}

    def _join(self, node: Join) -> dict[str, Any]:
        history = self.history.get(node.id) or known_columns(node, self.schemas)
        spec = join_spec(node, history)
        return self._timed(node, {**spec, "rightAddress": _FIRST_OTHER + self.operators[node.id]})

    def _label(self, node: Label) -> dict[str, Any]:
        return {
            **label_spec(node),
            **self._broadcast(node.table),
            "address": self.operators[node.id],
            "out": self._route(Port(node.id, "out")),
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
        other = _FIRST_OTHER + self.operators[node.id]
        return {
            **process_spec(node, history),
            **(right_spec(node, other) if isinstance(node, CoProcess) else {}),
            **self._broadcast(node.table),
            "address": self.operators[node.id],
            "outputs": [
                {
                    "port": port.output,
                    "schema": to_spark_json(self.schemas[port]),
                    "route": self._route(port),
                }
                for port in ports
            ],
        }

    def _union(self, node: Union) -> dict[str, Any]:
        return {
            "id": node.id,
            "name": label(node),
            "columns": list(self.schemas[Port(node.id, "out")].names),
            "route": self._route(Port(node.id, "out")),
        }

    def _union_step(self, node: Union, port: Port) -> dict[str, Any]:
        """Return the step into a union; its place tells the copies of one record apart."""
        is_copied = merges_copies(self.graph.node, node)
        place = node.inputs.index(port) if is_copied else None
        return {"step": "union", "id": node.id, "from": str(port), "place": place}

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

    def _route(self, port: Port) -> list[dict[str, Any]]:
        takers = [node for node in self.graph.consumers(port) if not feeds_table(port, node)]
        if not takers and str(port) in self.addresses:
            return [{"step": "count", "address": self.addresses[str(port)]}]
        return [step for node in takers for step in self._steps(node, port)]

    def _steps(self, node: Node, port: Port) -> list[dict[str, Any]]:
        match node:
            case Where():
                then = self._route(Port(node.id, "out"))
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
                return [{"step": "function", "address": self.functions[node.id]}]
            case Call():
                return [{"step": "function", "address": self.calls[node.id]}]
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
                        "address": self.operators[node.id],
                        "on": [path_of(path) for path in on],
                        **buckets,
                    }
                ]
            case Join():
                return [self._side_step(node, port, node.on, node.right_on)]
            case Union():
                return [self._union_step(node, port)]
            case Rebalance():
                return [{"step": "rebalance", "address": self._rebalance_address(node)}]
            case Output():
                return [self._output(node, None, path_of(node.key))]
            case Source():
                return []

    def _keyless_step(self, node: Label | Process) -> dict[str, Any]:
        keyed = isinstance(node, Process)
        return {
            "step": "operator",
            "name": label(node),
            "address": self.operators[node.id],
            "on": [],
            "broadcast": True,
            "keyed": keyed,
            **({"buckets": _PROCESS_BUCKETS} if keyed else {}),
        }

    def _side_step(
        self, node: Join | CoProcess, port: Port, left: Sequence[str], right: Sequence[str]
    ) -> dict[str, Any]:
        """Return the step to an operator of two streams, whose keys are given."""
        is_left = port == node.input
        return {
            "step": "operator",
            "name": label(node),
            "address": self.operators[node.id] + (0 if is_left else _FIRST_OTHER),
            "on": [path_of(path) for path in (left if is_left else right)],
            "side": "left" if is_left else "right",
        }

    def _select(self, node: Select) -> list[dict[str, Any]]:
        """Columns that only an output uses are selected when it encodes: nothing is computed."""
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
            "then": self._route(Port(node.id, "out")),
        }

    def _output(
        self, node: Output, columns: list[dict[str, Any]] | None, key: list[str] | None
    ) -> dict[str, Any]:
        return {
            "step": "output",
            "id": node.id,
            "name": label(node),
            "address": self.addresses[node.id],
            "columns": columns,
            "key": key,
            "format": node.format.value,
        }


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


def _find_nudge(graph: Graph) -> timedelta | None:
    """Return the interval at which a quiet flow checks for results due by the clock."""
    windows = (node for node in graph.nodes if isinstance(node, Window))
    triggers = (trigger for node in windows for trigger in node.early)
    return min(
        (trigger.every for trigger in triggers if isinstance(trigger, EveryProcessingTime)),
        default=None,
    )
