"""A flow as text: a tree from each source, with the exchange on every edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate._units import format_duration
from headgate.flow.formats.format import Format
from headgate.flow.formats.plain import JSON
from headgate.flow.graph.ancestry import feeds_table
from headgate.flow.graph.edges import Edge, edges_of
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    AsyncCall,
    Call,
    Column,
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
    SourceKind,
    Transform,
    Union,
    Where,
    Window,
    WithColumns,
    stream_ports,
)
from headgate.flow.state.processes import describe_state

# The most characters of a state's type.
_LONGEST_TYPE = 60


def explain(graph: Graph) -> str:
    """Return the graph as text, equal for equal graphs, without trailing blanks."""
    edges = edges_of(graph)
    lines = [f"flow {graph.name}", f"dead letters: {graph.dead_letters.describe()}"]
    for source in (*graph.streams(), *graph.tables()):
        lines += ["", _line(graph, source), *_branches(graph, edges, source, "")]
    return "\n".join(lines) + "\n"


def _branches(graph: Graph, edges: Sequence[Edge], node: Node, margin: str) -> Iterator[str]:
    branches = list(_outgoing(graph, edges, node))
    for number, (output, edge) in enumerate(branches, start=1):
        last = number == len(branches)
        name = "" if output == "out" else f" {output}"
        stem = f"{margin}{'└' if last else '├'}─{name}"
        if edge is None:
            yield f"{stem}: counted, not written"
            continue
        target = graph.node(edge.target)
        arrow = f"{stem}{' ─' if name else ''}[{edge.describe()}]→ "
        if feeds_table(edge.source, target) or edge.source != stream_ports(target)[0]:
            # The operator's branches are drawn once, below its first stream.
            yield f"{arrow}{target.id}"
            continue
        yield f"{arrow}{_line(graph, target)}"
        yield from _branches(graph, edges, target, f"{margin}{' ' if last else '│'}  ")


def _outgoing(graph: Graph, edges: Sequence[Edge], node: Node) -> Iterator[tuple[str, Edge | None]]:
    """Yield every edge with its output; an unused output yields None."""
    for output in node.outputs:
        outgoing = [edge for edge in edges if edge.source == Port(node.id, output)]
        if not outgoing and graph.may_be_unused(Port(node.id, output)):
            yield output, None
        for edge in outgoing:
            yield output, edge


def _line(graph: Graph, node: Node) -> str:
    name = graph.names.get(node.id)
    shown = f'{node.id} "{name}"' if name else node.id
    return f"{shown}: {describe_node(node)}"


def describe_node(node: Node) -> str:
    """Return a short description of a node."""
    match node:
        case Source(kind=SourceKind.STREAM):
            return f"stream of {node.topic.describe()}{_format(node.format)}{_times(node)}"
        case Source():
            version = f", newest by {node.version}" if node.version else ""
            when = "loaded first" if node.load.value == "first" else "loaded together with streams"
            topic = f"{node.topic.describe()}{_format(node.format)}"
            return f"table of {topic}, key {', '.join(node.key)}{version}, {when}"
        case Enrich():
            return f"enrich from {node.table} into {node.into}"
        case Window():
            figures = ", ".join(
                f"{named.aggregate.describe()} AS {named.name}" for named in node.aggregates
            )
            late = f", {format_duration(node.lateness)} of lateness" if node.lateness else ""
            early = "".join(f", early {trigger.describe()}" for trigger in node.early)
            return f"window {node.windows.describe()}: {figures}{late}{early}"
        case Dedupe():
            return f"dedupe by {', '.join(node.by)} within {format_duration(node.within)}"
        case Join():
            return f"join with {node.right}{_bounds(node)} into {node.into}"
        case CoProcess():
            return f"process with {node.right} by {node.function.name}{_kept(node)}"
        case Rebalance():
            return "rebalance over all tasks"
        case Union(inputs=ports):
            return f"union of {', '.join(map(str, ports))}"
        case Process():
            rules = f" with {node.table}" if node.table else ""
            return f"process by {node.function.name}{rules}{_kept(node)}"
        case Label():
            return f"labels of {node.table} into {node.into}"
        case Select(columns=columns):
            return f"select {_columns(columns)}"
        case Where(condition=condition):
            return f"where {_flat(condition)}"
        case WithColumns(columns=columns):
            return f"with columns {_columns(columns)}"
        case Transform(function=function):
            return f"transform by {function}"
        case AsyncCall(function=function):
            limits = f"{node.capacity} at once, {format_duration(node.timeout)} each"
            order = "" if node.ordered else ", unordered"
            return f"call {function.name}, {limits}, {node.retries} retries{order}"
        case Call(function=function):
            return f"{node.operator} by {function.name}"
        case Output(topic=topic, key=key):
            keyed = f", keyed by {key}" if key else ""
            return f"output to {topic.describe()}{_format(node.format)}{keyed}"


def _format(form: Format) -> str:
    """Return the format of a topic's records; nothing for JSON."""
    return "" if form == JSON else f" as {form.describe()}"


def _bounds(node: Join) -> str:
    """Return how far apart the times of a pair may be."""
    before, after = format_duration(node.before), format_duration(node.after)
    return f" within {before}" if before == after else f" from {before} before to {after} after"


def _kept(node: Process) -> str:
    """Return the states and the timers of a process."""
    parts = [
        f"{state.name} ({_shortened(describe_state(state))}"
        f"{f' for {format_duration(state.ttl)}' if state.ttl else ''})"
        for state in node.state
    ]
    parts += ["timers"] if node.timers else []
    return f": {', '.join(parts)}" if parts else ""


def _times(node: Source) -> str:
    place = f", its place as {node.meta}" if node.meta else ""
    if node.event_time is None:
        return place
    lateness = node.out_of_orderness
    late = f", up to {format_duration(lateness)} out of order" if lateness else ""
    return f", event time {node.event_time}{late}{place}"


def _columns(columns: Sequence[Column]) -> str:
    return ", ".join(
        column.name
        if column.expression == column.name
        else f"{_flat(column.expression)} AS {column.name}"
        for column in columns
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TYPE else f"{text[: _LONGEST_TYPE - 3]}..."


def _flat(sql: str) -> str:
    return " ".join(sql.split())
