"""The outputs in which a flow's graph requires the records of a source. Pure.

A record can be in several outputs only behind a port with several consumers. It can be in one
output several times only behind a union that it reaches by several ways.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from headgate.flow.graph.ancestry import sources_of
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import (
    Filter,
    FlatMap,
    Join,
    MapBatches,
    Node,
    Output,
    Port,
    Process,
    Source,
    Transform,
    Union,
    Where,
    Window,
    label,
    stream_ports,
)
from headgate.jobs.dead_letters.way_back import find_takers

_TOGETHER = "outputs"


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the records of one source go.

    Attributes:
        source: Its id.
        outputs: The outputs of its rows, without the dead letters; in the graph's order.
        unseen: Why a record may be in no readable output: a line for each place.
        copied: Where one record becomes several rows on purpose: a line for each place.
        uncounted: Outputs, and operators that write dead letters, in which a record may occur any
            number of times.
    """

    source: str
    outputs: tuple[str, ...]
    unseen: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    uncounted: frozenset[str] = frozenset()

    @property
    def is_one_to_one(self) -> bool:
        """Whether each record must be in exactly one row of all outputs."""
        return not self.unseen and not self.copied

    def group(self, output: str, origin: str | None = None) -> str | None:
        """Return the rows among which a record may occur once; None if it may occur often.

        Args:
            output: The output of a row.
            origin: Of a dead letter: the source or operator that it names.
        """
        place = output if origin is None else origin
        if place in self.uncounted:
            return None
        if not self.copied:
            return _TOGETHER
        # One record may fail in several branches, but only once in each.
        return output if origin is None else f"{output} {origin}"


def shape_of(
    graph: Graph, source: str, *, shows_places: Container[str], dead_letters_show: bool
) -> Shape:
    """Return where a source's records go.

    Args:
        source: The id of a stream.
        shows_places: The outputs whose rows name their record.
        dead_letters_show: Whether dead letters can be read.
    """
    walk = _Walk(graph, shows_places)
    walk.follow(Port(source, "out"), uncounted=False)
    unseen = [*walk.unseen]
    if not dead_letters_show:
        unseen.append(f"dead letters go to {graph.dead_letters.describe()}, which cannot be read")
    return Shape(
        source,
        tuple(node.id for node in graph.outputs() if node.id in walk.outputs),
        tuple(dict.fromkeys(unseen)),
        tuple(dict.fromkeys(walk.copied)),
        frozenset(walk.uncounted),
    )


def origins(graph: Graph) -> dict[str, tuple[Source, ...]]:
    """Return the sources of each node's rows, by the name of the node in dead letters.

    Dead letters name a source by its id, and an operator by its kind and id.
    """
    return {
        node.id if isinstance(node, Source) else label(node): sources_of(graph.node, node)
        for node in graph.nodes
    }


def outputs_of(graph: Graph, source: str) -> tuple[Output, ...]:
    """Return the outputs of a source's rows, without the dead letters."""
    of = origins(graph)
    return tuple(
        node
        for node in graph.outputs()
        if any(origin.id == source for origin in of[label(node)])
        and not _is_of_windows(graph, node)
    )


def find_closing_window(graph: Graph, source: str) -> Window | None:
    """Return a window in which a source's records may end, so that no output has a row of theirs.

    None if each record that enters a window is also in an output, such as a copy of the stream.
    """
    return _find_closing_window(graph, Port(source, "out"))


def _find_closing_window(graph: Graph, port: Port) -> Window | None:
    closing: list[Window] = []
    for node in find_takers(graph, port):
        match node:
            case Window():
                closing.append(node)
            case Output():
                return None
            case _:
                behind = (_find_closing_window(graph, Port(node.id, out)) for out in node.outputs)
                window = next((window for window in behind if window is not None), None)
                if window is None:
                    return None
                closing.append(window)
    return closing[0] if closing else None


def _is_of_windows(graph: Graph, node: Node) -> bool:
    """Tell whether each of a node's rows is made of many records."""
    ports = stream_ports(node)
    return bool(ports) and all(
        _is_window_result(graph, port) or _is_of_windows(graph, graph.node(port.node))
        for port in ports
    )


def _is_window_result(graph: Graph, port: Port) -> bool:
    return isinstance(graph.node(port.node), Window) and port.output == "updates"


class _Walk:
    """Follows rows from port to port, and collects what an audit cannot see."""

    def __init__(self, graph: Graph, shows_places: Container[str]) -> None:
        self._graph = graph
        self._shows_places = shows_places
        self.outputs: set[str] = set()
        self.unseen: list[str] = []
        self.copied: list[str] = []
        self.uncounted: set[str] = set()
        self._united: set[str] = set()

    def follow(self, port: Port, *, uncounted: bool) -> None:
        takers = find_takers(self._graph, port)
        if not takers:
            self.unseen.append(f"rows of {str(port)!r} are counted, but not written")
        if len(takers) > 1:
            names = ", ".join(label(node) for node in takers)
            self.copied.append(f"rows of {str(port)!r} go to {names}")
        for node in takers:
            self._take(node, uncounted=uncounted)

    def _take(self, node: Node, *, uncounted: bool) -> None:
        match node:
            case Output():
                self.outputs.add(node.id)
                if node.id not in self._shows_places:
                    self.unseen.append(f"rows in {node.topic.describe()} do not name their record")
            case Where() | Filter():
                self.unseen.append(f"{label(node)} drops rows")
            case Transform() | FlatMap() | MapBatches() | Process():
                self.unseen.append(f"{label(node)} may drop rows")
                uncounted = True
            case Join():
                self.unseen.append(f"{label(node)} makes rows of pairs of records")
                for output in node.outputs:
                    made = output == "matched"
                    self.follow(Port(node.id, output), uncounted=uncounted or made)
                return
            case Union():
                if node.id in self._united:
                    uncounted = True
                self._united.add(node.id)
            case Window():
                self.unseen.append(f"{label(node)} makes rows of many records")
                self.follow(Port(node.id, "late"), uncounted=uncounted)
                return
            case _:
                pass
        if uncounted:
            self.uncounted.add(node.id if isinstance(node, Output) else label(node))
        for output in node.outputs:
            self.follow(Port(node.id, output), uncounted=uncounted)
