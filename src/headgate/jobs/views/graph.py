"""A job's flow as a graph, with its row counts and rates: read from the job's folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate._codec import left_out_while
from headgate.flow.drawing.explain import describe_node
from headgate.flow.graph.ancestry import feeds_table, is_of_side_output
from headgate.flow.graph.edges import Edge, edges_of
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    Dedupe,
    Join,
    Node,
    Output,
    Port,
    Process,
    Select,
    Source,
    SourceKind,
    Window,
)
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.runs.lineage import find_run
from headgate.jobs.totals import without_rates

SOURCE = "source"
TABLE = "table"
OPERATOR = "operator"
OUTPUT = "output"
DEAD_LETTERS = "dead-letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The measurements of a node; None if unknown or not applicable.

    Counts are since the last start of the job; rates and the busy share are of its last batches.

    Attributes:
        records_in: Records read by a source; rows received by an operator or an output.
        records_out: Rows sent.
        busy: The operator's share of its tasks' time, from 0 to 1.
    """

    records_in: int | None = None
    records_out: int | None = None
    in_per_s: float | None = None
    out_per_s: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    watermark: str | None = None
    busy: float | None = None
    lag_records: int | None = None
    lag_bytes: int | None = None
    lag_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A source, a table, an operator or an output.

    Attributes:
        kind: `source`, `table`, `operator`, `output` or `dead-letters`.
        operator: The kind of operator: enrich, window, select.
        name: The name that the flow gives it; empty for none.
        title: The name, or else the id.
        side: Whether its rows come from side outputs only.
        detail: A short description.
    """

    id: str
    kind: str
    operator: str = ""
    name: str = field(default="", metadata=left_out_while(""))
    title: str
    detail: str
    side: bool = False
    facts: NodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """Rows from one node to another.

    Attributes:
        label: The output of a node with several: matched, missing, changes.
        exchange: How rows get there: `forward` in their task, `key_by userId`, `rebalance` or
            `broadcast`; empty for rows that go nowhere else.
        records: Rows since the last start; None if they were not counted.
        per_s: Rows a second, over the last few batches.
    """

    source: str
    target: str
    label: str
    exchange: str
    records: int | None
    per_s: float | None


@dataclass(frozen=True, slots=True)
class GraphView:
    """The graph of a job; without nodes if the job has no run yet."""

    job: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def view_graph(home: JobFolder) -> GraphView:
    """Return a job's flow as it was last run, with its row counts since the last start."""
    # Before the status: a supervisor that is gone has written its last status.
    alive = has_supervisor(home)
    status = home.find_json("status.json") or {}
    lineage = home.find_present_run() or status.get("lineage")
    run = find_run(home, str(lineage)) if lineage else None
    if run is None:
        return GraphView(home.name, (), ())
    return build_view(home.name, run.flow, status if alive else without_rates(status))


def build_view(job: str, graph: Graph, status: Mapping[str, Any]) -> GraphView:
    """Return the view of a graph with the counts of a job's status."""
    flow = _Flow(graph, status)
    nodes = [flow.view(node) for node in graph.nodes]
    nodes += [flow.unused(port) for port in graph.unused_outputs()]
    nodes.append(flow.dead_letters())
    return GraphView(job, tuple(nodes), tuple(flow.edges()))


class _Flow:
    """A graph with the counts of its ports."""

    def __init__(self, graph: Graph, status: Mapping[str, Any]) -> None:
        self._graph = graph
        self._status = status
        self._edges = edges_of(graph)
        self._rows = _port_counts(graph, self._map("ports"), self._map("outputs"))
        self._rates = _port_counts(graph, self._map("ports_per_s"), {})

    def view(self, node: Node) -> GraphNode:
        match node:
            case Source():
                kind = TABLE if node.kind is SourceKind.TABLE else SOURCE
                return self._node(node, kind, self._source_facts(node))
            case Output():
                return self._node(node, OUTPUT, self._output_facts(node))
            case _:
                return self._node(node, OPERATOR, self._operator_facts(node))

    def unused(self, port: Port) -> GraphNode:
        """Return the node of an output without a consumer."""
        return GraphNode(
            id=_unused_id(port),
            kind=OUTPUT,
            title=_unused_id(port),
            detail="an unused output: counted, not written",
            facts=NodeFacts(
                records_in=_whole(self._rows.get(port)), in_per_s=self._rates.get(port)
            ),
            operator="count",
            side=True,
        )

    def dead_letters(self) -> GraphNode:
        """Return the node of the dead letters."""
        topic = self._graph.dead_letters
        return GraphNode(
            id=topic.name,
            kind=DEAD_LETTERS,
            title=topic.name,
            detail=f"records that cannot be used, to {topic.describe()}",
            facts=NodeFacts(records_in=_whole(self._map("outputs").get(topic.name))),
            operator=DEAD_LETTERS,
            side=True,
        )

    def edges(self) -> Iterator[GraphEdge]:
        """Yield every edge, those to dead letters last."""
        for edge in self._edges:
            yield self._edge(edge.source, edge.target, self._label(edge), edge.describe())
        for port in self._graph.unused_outputs():
            yield self._edge(port, _unused_id(port), port.output)
        for node in self._graph.nodes:
            failed = f"{node.id}!"
            count = self._map("ports").get(failed)
            # Any source may have bad records; rows rarely fail in an operator.
            if isinstance(node, Source) or count:
                yield GraphEdge(
                    source=node.id,
                    target=self._graph.dead_letters.name,
                    label="cannot be used",
                    exchange="",
                    records=_whole(count),
                    per_s=self._map("ports_per_s").get(failed),
                )

    def _edge(self, port: Port, target: str, label: str, exchange: str = "") -> GraphEdge:
        return GraphEdge(
            source=port.node,
            target=target,
            label=label,
            exchange=exchange,
            records=_whole(self._rows.get(port)),
            per_s=self._rates.get(port),
        )

    def _node(self, node: Node, kind: str, facts: NodeFacts) -> GraphNode:
        name = self._graph.names.get(node.id, "")
        return GraphNode(
            id=node.id,
            kind=kind,
            name=name,
            title=name or node.id,
            detail=describe_node(node),
            facts=facts,
            operator=node.operator,
            side=isinstance(node, Output) and is_of_side_output(self._graph.node, node.input),
        )

    def _source_facts(self, node: Source) -> NodeFacts:
        out = Port(node.id, "out")
        bad = self._map("ports_per_s").get(f"{node.id}!")
        sent = self._rates.get(out)
        return NodeFacts(
            records_in=self._map("inputs").get(node.id),
            records_out=_whole(self._rows.get(out)),
            in_per_s=None if sent is None else sent + (bad or 0),
            out_per_s=sent,
            watermark=self._status.get("watermark") if node.event_time else None,
            lag_records=self._map("lag_records").get(node.id),
            lag_bytes=self._map("lag_bytes").get(node.id),
            lag_s=self._map("lag_s").get(node.id),
        )

    def _output_facts(self, node: Output) -> NodeFacts:
        return NodeFacts(
            records_in=_whole(self._map("outputs").get(node.id)),
            in_per_s=self._rates.get(node.input),
        )

    def _operator_facts(self, node: Node) -> NodeFacts:
        ports = [edge.source for edge in self._edges if edge.target == node.id]
        out = [Port(node.id, output) for output in node.outputs]
        # A process may be in a flow without event time.
        timed = isinstance(node, Window | Dedupe | Join | Process) and any(
            stream.event_time is not None for stream in self._graph.streams()
        )
        return NodeFacts(
            records_in=_whole(_total(self._rows, ports)),
            records_out=_whole(_total(self._rows, out)),
            in_per_s=_total(self._rates, ports),
            out_per_s=_total(self._rates, out),
            state_rows=self._map("state_rows").get(node.id),
            state_bytes=self._map("state_bytes").get(node.id),
            watermark=self._status.get("watermark") if timed else None,
            busy=self._map("busy").get(node.id),
        )

    def _label(self, edge: Edge) -> str:
        if feeds_table(edge.source, self._graph.node(edge.target)):
            return "changes"
        return "" if edge.source.output == "out" else edge.source.output

    def _map(self, name: str) -> Mapping[str, Any]:
        return self._status.get(name) or {}


def _unused_id(port: Port) -> str:
    return f"{port.node}.{port.output}"


def _port_counts(
    graph: Graph, ports: Mapping[str, float], outputs: Mapping[str, float]
) -> dict[Port, float]:
    """Return the rows of each port whose count is known.

    The kernel does not count a select that is applied when rows are written: as many rows leave it
    as arrive. A job of an older release counted rows of its outputs only.
    """
    counts: dict[Port, float] = {}
    for node in graph.nodes:
        for output in node.outputs:
            port = Port(node.id, output)
            if str(port) in ports:
                counts[port] = ports[str(port)]
            elif isinstance(node, Select) and node.input in counts and ports:
                counts[port] = counts[node.input]
            else:
                ends = [end.id for end in graph.consumers(port) if isinstance(end, Output)]
                counted = [outputs[end] for end in (*ends, str(port)) if end in outputs]
                if counted:
                    counts[port] = counted[0]
    return counts


def _total(counts: Mapping[Port, float], ports: list[Port]) -> float | None:
    """Return the sum over ports; None if one of them is unknown."""
    if not ports or any(port not in counts for port in ports):
        return None
    return sum(counts[port] for port in ports)


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)
