"""The flow: where a user begins, and what a job is made from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headgate.errors import HeadgateError
from headgate.flow.builder import Builder
from headgate.flow.completeness import check_complete
from headgate.flow.event_time import (
    IDLE_AFTER,
    parse_idle_after,
    parse_out_of_orderness,
    parse_time_unit,
)
from headgate.flow.explain import explain
from headgate.flow.graph import Graph
from headgate.flow.names import check_uid, did_you_mean
from headgate.flow.operators import Load, Port, Source, SourceKind
from headgate.flow.schema import Schema, schema_of
from headgate.flow.stream import Stream
from headgate.flow.table import Table
from headgate.flow.topics import Topic, as_topic


class Flow:
    """Declares what is read, what is done and what is written; runs nothing.

    Args:
        name: Lower-case letters, digits and '-'; the job is known by it.
        dead_letters: Where records go that cannot be decoded.
    """

    def __init__(self, name: str, *, dead_letters: str | Topic = "dead-letters") -> None:
        self._builder = Builder(name, as_topic(dead_letters))

    @property
    def name(self) -> str:
        """The flow's name."""
        return self._builder.name

    def stream(
        self,
        topic: str | Topic,
        schema: type | str | Schema,
        *,
        event_time: str | None = None,
        event_time_unit: str = "ms",
        out_of_orderness: str | timedelta = "0s",
        idle_after: str | timedelta | None = IDLE_AFTER,
        meta: str | None = None,
        uid: str | None = None,
    ) -> Stream:
        """Read a topic of events.

        Args:
            topic: A name, or a topic bound on its own.
            schema: A dataclass, DDL or a schema.
            event_time: The column that says when the event happened: a number since 1970, a
                timestamp, or text as in ISO 8601 (UTC where it names no zone).
            event_time_unit: What a number counts: "ms" or "s".
            out_of_orderness: How late an event may come: "5s".
            idle_after: For how long a stream without records holds back the event time of the
                flow, which is that of its slowest stream; None for ever.
            meta: The name of a further column, a struct with where each record was and what came
                with it: topic, partition, offset, timestamp, key, headers, event_time.
            uid: What the source's position is kept under; the topic's name where left out.
        """
        bound = as_topic(topic)
        source_id = bound.name if uid is None else check_uid(uid)
        what = self._builder.cannot_add(f"stream {source_id!r}")
        self._builder.add(
            Source(
                source_id,
                bound,
                schema_of(schema),
                SourceKind.STREAM,
                event_time,
                parse_out_of_orderness(event_time, out_of_orderness, what=what),
                key=(),
                version=None,
                load=Load.TOGETHER,
                meta=meta,
                idle_after=parse_idle_after(event_time, idle_after, what=what),
                event_time_unit=parse_time_unit(event_time_unit, what=what),
            )
        )
        return Stream(Port(source_id, "out"), self._builder)

    def table(
        self,
        topic: str | Topic,
        schema: type | str | Schema,
        *,
        key: str | Sequence[str],
        version: str | None = None,
        load: str = "first",
        uid: str | None = None,
    ) -> Table:
        """Read a changelog: the latest row for each key.

        Args:
            topic: A name, or a topic bound on its own.
            schema: A dataclass, DDL or a schema.
            key: The column or columns that tell rows apart.
            version: An integer or timestamp column whose greater value is the newer row;
                where left out, the record's place in the topic decides.
            load: "first" reads the table to its end before streams begin, on a first start;
                "together" reads it beside them.
            uid: What the source's position is kept under; the topic's name where left out.
        """
        bound = as_topic(topic)
        source_id = bound.name if uid is None else check_uid(uid)
        self._builder.add(
            Source(
                source_id,
                bound,
                schema_of(schema),
                SourceKind.TABLE,
                event_time=None,
                out_of_orderness=None,
                key=(key,) if isinstance(key, str) else tuple(key),
                version=version,
                load=_load(load, self._builder.cannot_add(f"table {source_id!r}")),
            )
        )
        return Table(source_id, self._builder)

    def graph(self) -> Graph:
        """Return the flow as a graph, or refuse it where something leads nowhere."""
        builder = self._builder
        graph = Graph(builder.name, tuple(builder.nodes.values()), builder.dead_letters)
        check_complete(graph)
        return graph

    def explain(self) -> str:
        """Return the graph as text, with the exchange on every edge."""
        return explain(self.graph())

    @classmethod
    def from_graph(cls, graph: Graph) -> Flow:
        """Return the flow of a graph, each node checked as if it were declared anew."""
        flow = cls(graph.name, dead_letters=graph.dead_letters)
        for node in graph.nodes:
            flow._builder.add(node)
        return flow

    @classmethod
    def from_json(cls, text: str) -> Flow:
        """Return the flow of a graph's JSON."""
        return cls.from_graph(Graph.from_json(text))


def _load(text: str, what: str) -> Load:
    try:
        return Load(text)
    except ValueError:
        known = [each.value for each in Load]
        raise HeadgateError(
            "BAD_LOAD",
            f"{what}: load is {text!r}, and it is 'first' or 'together'",
            hint=did_you_mean(str(text), known),
        ) from None
