"""The flow: the entry point for users, and the source of a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headgate.errors import HeadgateError
from headgate.flow.building.builder import Builder
from headgate.flow.building.reading import add_stream
from headgate.flow.checks.completeness import check_complete
from headgate.flow.drawing.explain import explain
from headgate.flow.drawing.svg import draw_flow
from headgate.flow.formats.custom import Decoder, is_decoder
from headgate.flow.formats.format import Format, format_of
from headgate.flow.formats.registry import Registry
from headgate.flow.graph.graph import Graph
from headgate.flow.names import check_uid, parse_member
from headgate.flow.operators.event_time import IDLE_AFTER, parse_idle_after, parse_out_of_orderness
from headgate.flow.operators.nodes import Load, Source, SourceKind, TimeUnit
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.streams.stream import Stream
from headgate.flow.streams.tables import Broadcast, Table
from headgate.flow.topics import Topic, as_topic


class Flow:
    """Declares inputs, operators and outputs; runs nothing.

    Args:
        name: Lower-case letters, digits and '-'; also the name of the job.
        dead_letters: The topic for records that cannot be decoded.
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
        format: str | Format | Decoder | None = None,  # noqa: A002 - the word for it
        registry: str | Registry | None = None,
    ) -> Stream:
        """Read a topic of events.

        Args:
            topic: A topic name, or a topic bound to one place.
            schema: A dataclass, DDL or a schema.
            event_time: The column with the time of the event: a number since 1970, a timestamp, or
                ISO 8601 text (UTC if it names no zone).
            event_time_unit: The unit of a numeric event time: "ms" or "s".
            out_of_orderness: How late an event may arrive: "5s".
            idle_after: How long a stream without records holds back the flow's event time, which
                follows the slowest stream; None for no limit.
            meta: The name of an extra struct column that describes the record: topic, partition,
                offset, timestamp, key, headers, event_time.
            uid: The id under which the source's position is stored; by default the topic's name.
            format: A name, a value of `headgate.formats`, or an object with `decode`; by default
                that of the topic, if it has its own, or "json".
            registry: The schema registry of an Avro format: `http://HOST:PORT`, with
                `?user=NAME&password=${env:PASSWORD}` if it needs a login.
        """
        bound = as_topic(topic)
        source_id = bound.name if uid is None else check_uid(uid)
        what = self._builder.cannot_add(f"stream {source_id!r}")
        source = Source(
            source_id,
            SourceKind.STREAM,
            bound,
            schema_of(schema),
            event_time,
            parse_out_of_orderness(event_time, out_of_orderness, what=what),
            key=(),
            version=None,
            load=Load.TOGETHER,
            meta=meta,
            idle_after=parse_idle_after(event_time, idle_after, what=what),
            event_time_unit=parse_member(
                TimeUnit,
                event_time_unit,
                name="event_time_unit",
                code="BAD_EVENT_TIME",
                what=what,
            ),
        )
        return Stream(add_stream(self._builder, source, format, registry), self._builder)

    def table(
        self,
        topic: str | Topic,
        schema: type | str | Schema,
        *,
        key: str | Sequence[str],
        version: str | None = None,
        load: str = "first",
        uid: str | None = None,
        format: str | Format | None = None,  # noqa: A002 - the word for it
        registry: str | Registry | None = None,
    ) -> Table:
        """Read a changelog: the latest row for each key.

        Args:
            topic: A topic name, or a topic bound to one place.
            schema: A dataclass, DDL or a schema.
            key: The column or columns that identify a row.
            version: An integer or timestamp column; the larger value is the newer row. By default
                the record's position in the topic decides.
            load: "first" reads the table to its end before the streams on a first start; "together"
                reads both at once.
            uid: The id under which the source's position is stored; by default the topic's name.
            format: The format of the records, by name or as a value of `headgate.formats`; by
                default that of the topic, if it has its own, or "json".
            registry: The schema registry of an Avro format: `http://HOST:PORT`, with
                `?user=NAME&password=${env:PASSWORD}` if it needs a login.
        """
        bound = as_topic(topic)
        source_id = bound.name if uid is None else check_uid(uid)
        what = self._builder.cannot_add(f"table {source_id!r}")
        if is_decoder(format):
            raise HeadgateError(
                "BAD_FORMAT",
                f"{what}: a format in Python decodes the records of streams only",
                hint="decode them in a flow of its own, and read its output as a table",
            )
        self._builder.add(
            Source(
                source_id,
                SourceKind.TABLE,
                bound,
                schema_of(schema),
                event_time=None,
                out_of_orderness=None,
                key=(key,) if isinstance(key, str) else tuple(key),
                version=version,
                load=parse_member(Load, load, name="load", code="BAD_LOAD", what=what),
                format=format_of(bound, format, registry=registry, what=what),
            )
        )
        return Table(source_id, self._builder)

    def broadcast(
        self,
        topic: str | Topic,
        schema: type | str | Schema,
        *,
        key: str | Sequence[str],
        version: str | None = None,
        load: str = "first",
        uid: str | None = None,
        format: str | Format | None = None,  # noqa: A002 - the word for it
        registry: str | Registry | None = None,
    ) -> Broadcast:
        """Read a changelog of which each task has all rows, for `label` and `with_broadcast`.

        Args:
            topic: A topic name, or a topic bound to one place.
            schema: A dataclass, DDL or a schema.
            key: As in `table`, like the other arguments.
        """
        table = self.table(
            topic,
            schema,
            key=key,
            version=version,
            load=load,
            uid=uid,
            format=format,
            registry=registry,
        )
        return Broadcast(table.id, self._builder)

    def graph(self) -> Graph:
        """Return the flow as a graph; refuse one that is not complete."""
        builder = self._builder
        nodes = builder.finished_nodes()
        graph = Graph(builder.name, nodes, builder.dead_letters, dict(builder.names))
        check_complete(graph)
        return graph

    def explain(self) -> str:
        """Return the graph as text, with the exchange on every edge."""
        return explain(self.graph())

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the graph, also while it is not complete."""
        builder = self._builder
        nodes = tuple(builder.nodes.values())
        return draw_flow(Graph(builder.name, nodes, builder.dead_letters, dict(builder.names)))

    @classmethod
    def from_graph(cls, graph: Graph) -> Flow:
        """Return the flow of a graph; each node is checked as if newly declared."""
        flow = cls(graph.name, dead_letters=graph.dead_letters)
        for node in graph.nodes:
            flow._builder.add(node, name=graph.names.get(node.id))
        return flow

    @classmethod
    def from_json(cls, text: str) -> Flow:
        """Return the flow of a graph's JSON."""
        return cls.from_graph(Graph.from_json(text))
