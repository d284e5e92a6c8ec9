"""A dead letter and its job's flow: whether it is the job's, and where its record goes back to.

A record that could not be decoded is nowhere else, unless another source reads its topic too. The
record of a row that failed inside the flow can be sent again only if no operator before has
written or remembered anything of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.connectors.broker.topic import has_name
from headgate.connectors.registry import find_connector, get_connector
from headgate.flow.graph.ancestry import feeds_table, sources_of, upstream_ports
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    Dedupe,
    FlatMap,
    Join,
    MapBatches,
    Node,
    Port,
    Process,
    Source,
    SourceKind,
    Transform,
    Window,
    label,
    stream_ports,
)
from headgate.flow.topics import Topic
from headgate.jobs.dead_letters.letter import DeadLetter, Kind


class Ownership:
    """Distinguishes the letters of one job from those of others.

    Letters of release 0.7 do not name their job. Such a letter counts as the job's if its flow
    reads the topic of the record, or has the operator at which the row failed.

    Args:
        graph: The job's flow as it was last run.
    """

    def __init__(self, job: str, graph: Graph) -> None:
        self._job = job
        self._operators = {label(node) for node in graph.nodes}
        self._topics = [node.topic for node in graph.nodes if isinstance(node, Source)]

    def has(self, kind: Kind) -> bool:
        """Tell whether letters of a kind are the job's."""
        if kind.job:
            return kind.job == self._job
        name = kind.topic
        if name is None:
            return kind.source in self._operators
        return any(has_name(topic, name) for topic in self._topics)


@dataclass(frozen=True, slots=True)
class WayBack:
    """The way back of a letter's record.

    Attributes:
        topic: The topic it came from; None if it cannot go back.
        why_not: The reason then, in words.
        table: The table in which the record would replace a newer row, since the table has no
            version column; otherwise empty.
    """

    topic: Topic | None
    why_not: str = ""
    table: str = ""


def find_way_back(graph: Graph, letter: DeadLetter) -> WayBack:
    """Return the way back of the record of a letter of this flow."""
    for node in graph.nodes:
        if letter.of_row and label(node) == letter.source:
            if isinstance(node, Process) and not letter.topic:
                return WayBack(None, "a timer failed, which has no record")
            if letter.reason == "BAD_RULE":
                return WayBack(None, "a rule cannot be compiled: write it again")
            return _from_row(graph, node, letter.topic)
        if isinstance(node, Source) and not letter.of_row and node.id == letter.source:
            return _to_source(graph, node, _of_name(node.topic, letter.topic))
    what = letter.source if letter.of_row else f"source {letter.source!r}"
    return WayBack(None, f"the flow has no {what} any more")


def topics_of_operators(graph: Graph) -> dict[str, str]:
    """Return the topic of each operator's records, by the operator's name in dead letters.

    Not that of a process, nor of operators behind it: its letters name the topic of a record, and
    rows of timers have no record.
    """
    topics: dict[str, str] = {}
    for node in graph.nodes:
        if isinstance(node, Source):
            topics[label(node)] = node.topic.name
            continue
        above = [topics.get(label(graph.node(port.node))) for port in stream_ports(node)]
        first = above[0]
        if first is not None and len(set(above)) == 1 and not isinstance(node, Process):
            topics[label(node)] = first
    return topics


def _from_row(graph: Graph, node: Node, topic: str) -> WayBack:
    """Return the way back of the record of a row that failed at a node.

    Args:
        topic: The name of the record's topic; empty if the letter does not say it.
    """
    sources = sources_of(graph.node, node)
    named = [source for source in sources if source.topic.name == topic]
    if len(sources) > 1 and len(named) != 1:
        names = ", ".join(source.id for source in sources)
        return WayBack(None, f"it does not say which of the sources {names} its record came from")
    source = named[0] if named else sources[0]
    for port in upstream_ports(graph.node, node):
        above = graph.node(port.node)
        if source in sources_of(graph.node, above) and (why_not := _trace(graph, above, port)):
            return WayBack(None, why_not)
    if source.topic.pattern is not None:
        why_not = f"it does not say which topic of {source.topic.pattern!r} its record came from"
        return WayBack(None, why_not)
    return _to_source(graph, source, source.topic)


def _to_source(graph: Graph, source: Source, topic: Topic) -> WayBack:
    for other in graph.nodes:
        if isinstance(other, Source) and other.id != source.id and _reads(other.topic, topic):
            why_not = f"source {other.id!r} also reads that topic, and would read the record twice"
            return WayBack(None, why_not)
    is_by_place = source.kind is SourceKind.TABLE and source.version is None
    return WayBack(topic, table=source.id if is_by_place else "")


def _reads(read: Topic, topic: Topic) -> bool:
    """Tell whether a topic is among those that a source reads."""
    connector = find_connector(read)
    return connector is not None and connector.reads(read, topic)


def _trace(graph: Graph, above: Node, port: Port) -> str:
    """Return the trace that rows of a port left behind, in words; empty if there is none."""
    takers = find_takers(graph, port)
    if len(takers) > 1:
        names = ", ".join(label(taker) for taker in takers)
        return f"its record went other ways too (rows of {str(port)!r} go to {names})"
    match above:
        case Window() if port.output == "updates":
            return f"its row is one of {label(above)}, which makes rows of many records"
        case Dedupe() if port.output == "unique":
            return f"{label(above)} has seen its record, and would drop it as a duplicate"
        case Join() if port.output != "late":
            return f"{label(above)} has kept its record, and may have made other rows of it"
        case Process():
            return f"{label(above)} has seen its record, and may have made other rows of it"
        case Transform() | FlatMap() | MapBatches():
            return f"{label(above)} may have made other rows of its record"
        case _:
            return ""


def find_takers(graph: Graph, port: Port) -> list[Node]:
    """Return the nodes that take a port's rows, without those that look them up as a table."""
    return [node for node in graph.consumers(port) if not feeds_table(port, node)]


def _of_name(topic: Topic, name: str) -> Topic:
    """Return the topic of a name among those of a pattern."""
    return topic if topic.pattern is None else get_connector(topic).log_of(topic).bind(name)
