"""Checks of a whole flow before it is planned."""

from __future__ import annotations

from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Port, label
from headgate.flow.topics import Topic


def check_complete(graph: Graph) -> None:
    """Refuse a flow without streams, with an unused table, an unread main output or a loop."""
    what = f"cannot build flow {graph.name!r}"
    if not graph.streams():
        raise HeadgateError(
            "FLOW_EMPTY",
            f"{what}: it reads no stream",
            hint="add one: flow.stream('orders', Order).to('copies')",
        )
    _check_main_outputs(graph, what)
    _check_tables(graph, what)
    _check_topics(graph, what)


def _check_main_outputs(graph: Graph, what: str) -> None:
    tables = graph.tables()
    for node in graph.nodes:
        if node in tables:
            continue
        for output in node.outputs:
            port = Port(node.id, output)
            if not graph.consumers(port) and not graph.may_be_unused(port):
                raise HeadgateError(
                    "OUTPUT_NOWHERE",
                    f"{what}: output {output!r} of {label(node)} is not used",
                    hint=f"write it to a topic: .to('{port.node.replace('.', '-')}-out')",
                )


def _check_tables(graph: Graph, what: str) -> None:
    for table in graph.tables():
        if not graph.consumers(Port(table.id, "out")):
            raise HeadgateError(
                "TABLE_UNUSED",
                f"{what}: no operator uses {label(table)}",
                hint="enrich a stream with a table; use label or with_broadcast for a broadcast; "
                f"or remove the source {table.topic.name!r}",
            )


def _check_topics(graph: Graph, what: str) -> None:
    dead_letters = graph.dead_letters
    if not dead_letters.can_write:
        raise HeadgateError(
            "TOPIC_WRONG_WAY",
            f"{what}: dead letters cannot be written to {dead_letters.describe()}",
            hint="use a topic that can be written: dead_letters='dead-letters'",
        )
    read = [source.topic for source in (*graph.streams(), *graph.tables())]
    _check_no_loop(dead_letters, read, what)
    for output in graph.outputs():
        _check_no_loop(output.topic, read, what)
        if output.topic.name == dead_letters.name:
            raise HeadgateError(
                "DUPLICATE_OUTPUT",
                f"{what}: {str(output.input)!r} is written to {output.topic.describe()}, the "
                "topic of the flow's dead letters",
                hint="write it to another topic, or move the dead letters: Flow(..., "
                "dead_letters='rejected')",
            )


def _check_no_loop(topic: Topic, read: list[Topic], what: str) -> None:
    if topic in read:
        raise HeadgateError(
            "OUTPUT_IS_SOURCE",
            f"{what}: it reads and writes {topic.describe()}, so it would never end",
            hint=f"write to another topic: '{topic.name}-out'",
        )
