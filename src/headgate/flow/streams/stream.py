"""Streams and tables: the values that users chain operators on, and what operators return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, cast

from headgate.errors import HeadgateError
from headgate.flow.graph.unions import check_streams
from headgate.flow.names import check_column_name, parse_member
from headgate.flow.operators.aggregates import Aggregate, NamedAggregate
from headgate.flow.operators.columns import check_expression, parse_column
from headgate.flow.operators.event_time import parse_wait
from headgate.flow.operators.nodes import (
    RESULT_COLUMNS,
    AsyncCall,
    Column,
    Dedupe,
    Enrich,
    Filter,
    FlatMap,
    Join,
    Label,
    Map,
    MapBatches,
    OnError,
    Output,
    OutputFormat,
    Port,
    Rebalance,
    Select,
    Transform,
    Union,
    Where,
    Window,
    WithColumns,
)
from headgate.flow.operators.windowing import (
    EveryEvents,
    EveryEventTime,
    EveryProcessingTime,
    Session,
    Sliding,
    Trigger,
    Tumbling,
    Windows,
    parse_span,
)
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.schemas.signatures import Signature, read_signature, result_schema
from headgate.flow.streams.async_calling import call_node
from headgate.flow.streams.broadcasting import check_broadcast
from headgate.flow.streams.builder import Builder
from headgate.flow.streams.computed_columns import ComputedColumns, compute_columns
from headgate.flow.streams.connecting import ConnectedStreams, check_connected
from headgate.flow.streams.joining import join_node, not_a_stream
from headgate.flow.streams.missing_methods import (
    BROADCAST,
    KEYED,
    STREAM,
    TABLE,
    WINDOWED,
    Explained,
)
from headgate.flow.streams.outputs import (
    Called,
    Deduped,
    Enriched,
    Joined,
    Labelled,
    Processed,
    Windowed,
)
from headgate.flow.streams.processing import add_process
from headgate.flow.topics import Topic, as_topic
from headgate.functions.broadcast import BroadcastProcess
from headgate.functions.keyed import KeyedProcess
from headgate.functions.stored import Callback, RowType, describe


@dataclass(frozen=True, slots=True, eq=False)
class Table(Explained):
    """The latest row per key of a changelog."""

    id: str
    _builder: Builder

    _kind: ClassVar[str] = "a table"
    _instead: ClassVar[Mapping[str, str]] = TABLE

    @property
    def schema(self) -> Schema:
        """The columns of a row."""
        return self._builder.schemas[Port(self.id, "out")]


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Explained):
    """The latest row per key of a changelog, in each task."""

    id: str
    _builder: Builder

    _kind: ClassVar[str] = "a broadcast"
    _instead: ClassVar[Mapping[str, str]] = BROADCAST

    @property
    def schema(self) -> Schema:
        """The columns of a row."""
        return self._builder.schemas[Port(self.id, "out")]


@dataclass(frozen=True, slots=True, eq=False)
class Stream(Explained):
    """The rows of one output port; every operator adds a node and returns a new stream."""

    port: Port
    _builder: Builder

    _kind: ClassVar[str] = "a stream"
    _instead: ClassVar[Mapping[str, str]] = STREAM

    @property
    def schema(self) -> Schema:
        """The columns of a row, as far as they are known without Spark."""
        return self._builder.schemas[self.port]

    def enrich(
        self,
        uid: str,
        table: Table,
        *,
        on: str | Sequence[str],
        into: str,
        name: str | None = None,
    ) -> Enriched:
        """Add the table row with the same key to each event, as the column `into`.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            table: A table of the same flow.
            on: The columns with the table's key, in the key's order; dotted paths work.
            into: The name of the new column, a struct with the table's columns.
            name: How the console, metrics and `explain` show it; it may change between runs.
        """
        what = self._builder.cannot_add(f"enrich {uid!r}")
        if not isinstance(table, Table) or table._builder is not self._builder:
            raise HeadgateError(
                "TABLE_FOREIGN",
                f"{what}: its table is not a table of this flow",
                hint="create it with this flow: flow.table('users', User, key='id')",
            )
        columns = (on,) if isinstance(on, str) else tuple(on)
        self._builder.add(Enrich(uid, self.port, table.id, columns, into), name=name)
        return Enriched(*_outputs(uid, Enrich.outputs, self._builder))

    def key_by(self, *columns: str) -> KeyedStream:
        """Group events by key for `window` and `process`.

        Args:
            columns: One or more: names, dotted paths or SQL expressions, best with a name: "a % 10
                AS shard".
        """
        if not columns or not all(isinstance(column, str) for column in columns):
            raise HeadgateError(
                "KEY_MISMATCH",
                f"{self._builder.cannot_add('key_by')}: it needs at least one column",
                hint="name one or more columns: key_by('shop', 'user.id'); for all events together "
                "call window without key_by",
            )
        return KeyedStream(self.port, columns, self._builder)

    def window(
        self,
        uid: str,
        windows: Windows,
        *,
        allowed_lateness: str | timedelta = "0s",
        early: Trigger | Sequence[Trigger] = (),
        name: str | None = None,
    ) -> WindowedStream:
        """Cut all events into windows of event time, without keys; a single task does it.

        Args:
            uid: The permanent id of the operator's state.
            windows: As in `KeyedStream.window`, like the other arguments.
        """
        everything = KeyedStream(self.port, (), self._builder)
        return everything.window(
            uid, windows, allowed_lateness=allowed_lateness, early=early, name=name
        )

    def dedupe(
        self,
        uid: str,
        *,
        by: str | Sequence[str],
        within: str | timedelta,
        name: str | None = None,
    ) -> Deduped:
        """Pass the first event of each key and separate the duplicates.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            by: The column or columns that identify duplicates; dotted paths work.
            within: Events of one key closer than this in event time are duplicates.
            name: As in `enrich`.
        """
        columns = (by,) if isinstance(by, str) else tuple(by)
        node = Dedupe(uid, self.port, columns, parse_span(within, f"dedupe {uid!r}"))
        self._builder.add(node, name=name)
        return Deduped(*_outputs(uid, Dedupe.outputs, self._builder))

    def join(
        self,
        uid: str,
        other: Stream,
        *,
        on: str | Sequence[str],
        right_on: str | Sequence[str] | None = None,
        within: str | timedelta | None = None,
        before: str | timedelta | None = None,
        after: str | timedelta | None = None,
        into: str = "right",
        name: str | None = None,
    ) -> Joined:
        """Pair each row with the rows of another stream that have its key and a time close to it.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            other: The right stream, of the same flow. Both have event time.
            on: The column or columns of the key; dotted paths work.
            right_on: The same of the right stream, if they have other names there.
            within: How far apart in event time two rows may be, in both directions.
            before: In place of `within`: how much earlier the right row may be; 0 by default.
            after: Likewise how much later; 0 by default.
            into: The name of the new column with the right row.
            name: As in `enrich`.
        """
        what = self._builder.cannot_add(f"join {uid!r}")
        if not isinstance(other, Stream) or other._builder is not self._builder:
            raise not_a_stream(is_table=isinstance(other, Table), what=what)
        node = join_node(
            uid,
            self.port,
            other.port,
            on=on,
            right_on=right_on,
            within=within,
            before=before,
            after=after,
            into=into,
            what=what,
        )
        self._builder.add(node, name=name)
        return Joined(*_outputs(uid, Join.outputs, self._builder))

    def union(self, *others: Stream) -> Stream:
        """Put the rows of several streams together.

        The rows of each partition of a source stay in their order.

        Args:
            others: Streams of the same flow with the same columns, which may be in another order.
        """
        node_id, what = self._named(Union.operator)
        check_streams(
            (isinstance(other, Stream) and other._builder is self._builder for other in others),
            tables=any(isinstance(other, Table) for other in others),
            what=what,
        )
        return self._add(Union(node_id, (self.port, *(other.port for other in others))))

    def rebalance(self) -> Stream:
        """Spread the rows evenly over all tasks, where the partitions of a topic are few.

        Rows have no order behind it, until an operator with a key puts those of a key in order.
        """
        node_id, _ = self._named(Rebalance.operator)
        return self._add(Rebalance(node_id, self.port))

    def label(
        self,
        uid: str,
        rules: Broadcast,
        *,
        when: str = "when",
        label: str = "label",
        into: str = "labels",
        name: str | None = None,
    ) -> Labelled:
        """Add the labels of all rules that hold for an event; the rules are rows of a broadcast.

        Labels are in the order of the rules' keys. A rule whose condition cannot be compiled is a
        dead letter, and holds for no event.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            rules: `flow.broadcast("rules", Rule, key="id")`.
            when: The column of a rule with its condition: SQL over the columns of an event.
            label: The column of a rule with its label.
            into: The name of the new column, an array.
            name: What people see of the operator; by default its uid.
        """
        what = self._builder.cannot_add(f"label {uid!r}")
        check_broadcast(rules, Broadcast, self._builder, what=what)
        self._builder.add(Label(uid, self.port, rules.id, when, label, into), name=name)
        return Labelled(Stream(Port(uid, "out"), self._builder))

    def with_broadcast(
        self,
        uid: str,
        table: Broadcast,
        function: BroadcastProcess[Any, Any, Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Processed:
        """Call a process of your own with each event and all rows of a broadcast.

        Rows of one partition of a topic stay in order, and one task handles them. After `key_by`
        the process has state and timers too.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            table: `flow.broadcast("rules", Rule, key="id")`.
            function: An object of a class derived from `BroadcastProcess[Order, Rule, Priced]`.
            schema: As in `KeyedStream.process`, like `on_error`.
            name: What people see of the operator; by default its uid.
        """
        keyed = KeyedStream(self.port, (), self._builder)
        return keyed.with_broadcast(
            uid, table, function, schema=schema, on_error=on_error, name=name
        )

    def select(self, *columns: str) -> Stream:
        """Keep only these columns.

        Args:
            columns: Each a name ("user"), a dotted path ("user.firstName", which gives
                `firstName`) or a SQL expression with a name ("price * 2 AS total").
        """
        node_id, what = self._named(Select.operator)
        parsed = tuple(parse_column(column, what=what) for column in columns)
        return self._add(Select(node_id, self.port, parsed))

    def where(self, condition: str) -> Stream:
        """Keep the rows for which a SQL condition is true."""
        node_id, what = self._named(Where.operator)
        return self._add(Where(node_id, self.port, check_expression(condition, what=what)))

    def with_columns(self, *columns: str, **named: str) -> Stream:
        """Add columns, or replace those of the same name.

        Every expression sees the original row, not the columns added beside it.

        Args:
            columns: SQL expressions with names: "price * 2 AS total".
            named: SQL expressions by name: total="price * 2".
        """
        node_id, what = self._named(WithColumns.operator)
        parsed = [parse_column(column, what=what) for column in columns]
        parsed += [
            Column(check_column_name(name), check_expression(expression, what=what).strip())
            for name, expression in named.items()
        ]
        return self._add(WithColumns(node_id, self.port, tuple(parsed)))

    def transform(
        self, function: str | Callable[[Any], Any], schema: type | str | Schema | None = None
    ) -> Stream:
        """Call a function on the rows as a DataFrame, for stateless work that SQL cannot express.

        It is refused after an operator with state.

        Args:
            function: A function, or "module:function"; takes a DataFrame and returns one. It must
                work row by row: no aggregation, no join of streams.
            schema: The columns it returns; by default the columns it receives.
        """
        node_id, what = self._named(Transform.operator)
        returned = self.schema if schema is None else schema_of(schema)
        if not callable(function):
            return self._add(Transform(node_id, self.port, function, returned))
        stored = describe(function, what=what)
        made = self._add(Transform(node_id, self.port, stored.name, returned, stored))
        self._builder.callbacks[node_id] = Callback(function)
        return made

    def map(
        self,
        uid: str,
        function: Callable[[Any], Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Stream:
        """Replace each row by the one that a Python function returns.

        Args:
            uid: The permanent id of the operator.
            function: Takes a row: the dataclass or `dict` of its annotation, or else an object
                with the columns as attributes. Returns a dataclass, a dict or a row.
            schema: The columns of its results; by default those of the dataclass that it is
                annotated to return.
            on_error: "fail" to fail the job when the function raises; "dead-letter" to write the
                row to the dead letters, with the traceback.
            name: As in `enrich`.
        """
        return self._call(Map, uid, function, schema, on_error, name)

    def flat_map(
        self,
        uid: str,
        function: Callable[[Any], Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Stream:
        """Replace each row by those that a Python function returns: none, one or several.

        Args:
            uid: The permanent id of the operator.
            function: Like that of `map`, but returns a list or yields.
            schema: As in `map`, like `on_error` and `name`.
        """
        return self._call(FlatMap, uid, function, schema, on_error, name)

    def filter(
        self, function: Callable[[Any], Any], *, on_error: str = "fail", name: str | None = None
    ) -> Stream:
        """Keep the rows for which a Python function returns a true value.

        Args:
            function: Takes a row, as in `map`.
            on_error: As in `map`, like `name`.
        """
        node_id, what = self._named(Filter.operator)
        if isinstance(function, str):
            raise HeadgateError(
                "BAD_FUNCTION",
                f"{what}: it needs a function, got {function!r}",
                hint=f"use where for a SQL condition: .where({function!r})",
            )
        return self._call(Filter, node_id, function, self.schema, on_error, name)

    def map_batches(
        self,
        uid: str,
        function: Callable[[Any], Any],
        *,
        schema: type | str | Schema | None = None,
        name: str | None = None,
    ) -> Stream:
        """Replace batches of rows, as `pyarrow.Table`s, by those that a function returns.

        The function must return a row for each row, in the same order; or keep the column
        `__headgate`, which ties a row to its record, and may then drop and duplicate rows. Where
        a batch ends may differ between attempts, so each row must depend on its own values only.

        Args:
            uid: The permanent id of the operator.
            function: Takes a table and returns a table.
            schema: The columns that it returns; by default the columns it receives.
            name: As in `enrich`.
        """
        return self._call(MapBatches, uid, function, schema or self.schema, "fail", name)

    def call(
        self,
        uid: str,
        function: Callable[[Any], Awaitable[Any]],
        *,
        schema: type | str | Schema | None = None,
        capacity: int = 100,
        timeout: str | timedelta = "2s",
        retries: int = 3,
        ordered: bool = True,
        name: str | None = None,
    ) -> Called:
        """Call an async function with each row: a service, a database, another system.

        Answers are recorded before rows leave, so a batch that is repeated gives the same rows. A
        call that was made and not recorded is made again.

        Args:
            uid: The name of the operator; answers are recorded under it.
            function: Takes a row as in `map`, and is `async`. Returns a dataclass, a dict or a row.
            schema: As in `map`.
            capacity: The number of calls of a task that may be under way at once.
            timeout: The maximum time of one attempt.
            retries: How often a call that raised or timed out is made again, after 100 ms, then
                twice as long each time, 10 s at most.
            ordered: True if rows leave in the order in which they came; otherwise in the order in
                which their calls ended.
            name: As in `enrich`.
        """
        node, callback = call_node(
            uid,
            self.port,
            function,
            self.schema,
            schema=schema,
            capacity=capacity,
            timeout=timeout,
            retries=retries,
            ordered=ordered,
            what=self._builder.cannot_add(f"call {uid!r}"),
        )
        self._builder.add(node, name=name)
        self._builder.callbacks[uid] = callback
        return Called(*_outputs(uid, AsyncCall.outputs, self._builder))

    def _call(
        self,
        kind: type[Map | FlatMap | Filter | MapBatches],
        uid: str,
        function: Callable[[Any], Any],
        schema: type | str | Schema | None,
        on_error: str,
        name: str | None,
    ) -> Stream:
        if callable(uid):
            raise HeadgateError(
                "BAD_FUNCTION",
                f"{self._builder.cannot_add(kind.operator)}: its first argument is its uid, got "
                "a function",
                hint=f".{kind.operator.replace('-', '_')}('clean', my_function)",
            )
        what = self._builder.cannot_add(f"{kind.operator} {uid!r}")
        described = describe(function, what=what)
        signature = (
            Signature(RowType(), None, None)
            if kind is MapBatches
            else read_signature(function, self.schema, what=what)
        )
        returned = result_schema(signature, schema, many=kind is FlatMap, what=what)
        error = parse_member(OnError, on_error, name="on_error", code="BAD_FUNCTION", what=what)
        node = kind(uid, self.port, described, returned, signature.columns, error)
        self._builder.add(node, name=name)
        self._builder.callbacks[uid] = Callback(function, signature.argument)
        return Stream(Port(uid, "out"), self._builder)

    def to(
        self,
        topic: str | Topic,
        *,
        key: str | None = None,
        format: str = "json",  # noqa: A002 - the word for it
    ) -> None:
        """Write the rows to a topic, given by name or bound to one place.

        Args:
            key: The column whose text is the message key; dotted paths work. Logs with keys keep
                the rows of one key in order and compact by it.
            format: "json" for an object per row; "text" for the text of its single string column,
                with line breaks replaced by blanks.
        """
        target = as_topic(topic)
        what = self._builder.cannot_add(f"output {target.name!r}")
        form = parse_member(OutputFormat, format, name="format", code="BAD_OUTPUT", what=what)
        output_id = self._builder.output_id(target.name)
        self._builder.add(Output(output_id, self.port, target, key, form))

    def _named(self, operator: str) -> tuple[str, str]:
        node_id = self._builder.free_id(self.port, operator)
        return node_id, self._builder.cannot_add(f"{operator} {node_id!r}")

    def _add(self, node: Select | Where | WithColumns | Transform | Union | Rebalance) -> Stream:
        self._builder.add(node)
        return Stream(Port(node.id, "out"), self._builder)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedStream(Explained):
    """Rows grouped by key; without columns, all rows form one group in a window."""

    port: Port
    columns: tuple[str, ...]
    _builder: Builder

    _kind: ClassVar[str] = "a keyed stream"
    _instead: ClassVar[Mapping[str, str]] = KEYED

    def window(
        self,
        uid: str,
        windows: Windows,
        *,
        allowed_lateness: str | timedelta = "0s",
        early: Trigger | Sequence[Trigger] = (),
        name: str | None = None,
    ) -> WindowedStream:
        """Cut each key's events into windows of event time.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            windows: `tumbling("15m")`, `sliding("15m", every="5m")` or `session(gap="30m")`.
            allowed_lateness: How long after its end a window still takes events, each followed by a
                correction; later events go to `late`.
            early: When a window emits results before its end: `every_events(4)`,
                `every_event_time("2m")`, `every_processing_time("10s")`, or several.
            name: How the console, metrics and `explain` show it; it may change between runs.
        """
        if not isinstance(windows, Tumbling | Sliding | Session):
            raise self._bad(uid, f"{windows!r} is not a kind of window", 'use tumbling("15m")')
        triggers = tuple(early) if isinstance(early, Sequence) else (early,)
        for trigger in triggers:
            if not isinstance(trigger, EveryEvents | EveryEventTime | EveryProcessingTime):
                raise self._bad(
                    uid, f"{early!r} is not a trigger", 'use early=every_event_time("2m")'
                )
        what = self._builder.cannot_add(f"window {uid!r}")
        lateness = parse_wait(allowed_lateness, name="allowed_lateness", what=what)
        return WindowedStream(self, uid, windows, lateness, triggers, name)

    def process(
        self,
        uid: str,
        function: KeyedProcess[Any, Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Processed:
        """Call a process of your own with the events of each key, with state and timers.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            function: An object of a class derived from `KeyedProcess[Order, Alert]`, where `Order`
                is what it takes and `Alert` the dataclass of the rows that it emits.
            schema: The columns of the rows that it emits, if the class does not name a dataclass.
            on_error: "fail" to fail the job when it raises; "dead-letter" to undo all that it did
                with the event or timer, and to write the event to the dead letters.
            name: As in `window`.
        """
        add_process(
            self._builder,
            self.port,
            self.columns,
            uid=uid,
            function=function,
            schema=schema,
            on_error=on_error,
            name=name,
        )
        return self._processed(uid)

    def connect(self, other: KeyedStream) -> ConnectedStreams:
        """Connect this stream with another one, for one process with the state of both.

        Args:
            other: A keyed stream of the same flow, whose key has the same types. This stream is the
                left one, the other is the right one.
        """
        check_connected(self._builder, other, is_keyed=isinstance(other, KeyedStream))
        return ConnectedStreams(self, other)

    def _processed(self, uid: str) -> Processed:
        return Processed(Stream(Port(uid, "out"), self._builder))

    def with_broadcast(
        self,
        uid: str,
        table: Broadcast,
        function: BroadcastProcess[Any, Any, Any],
        *,
        schema: type | str | Schema | None = None,
        on_error: str = "fail",
        name: str | None = None,
    ) -> Processed:
        """Call a process with the events of each key, state, timers and all rows of a broadcast.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            table: `flow.broadcast("rules", Rule, key="id")`.
            function: An object of a class derived from `BroadcastProcess[Order, Rule, Priced]`.
            schema: As in `process`, like `on_error`.
            name: What people see of the operator; by default its uid.
        """
        what = self._builder.cannot_add(f"process {uid!r}")
        check_broadcast(table, Broadcast, self._builder, what=what)
        add_process(
            self._builder,
            self.port,
            self.columns,
            uid=uid,
            # To type checkers its context is another.
            function=cast("KeyedProcess[Any, Any]", function),
            schema=schema,
            on_error=on_error,
            name=name,
            table=table.id,
        )
        return Processed(Stream(Port(uid, "out"), self._builder))

    def _bad(self, uid: str, problem: str, hint: str) -> HeadgateError:
        what = self._builder.cannot_add(f"window {uid!r}")
        return HeadgateError(
            "BAD_WINDOW", f"{what}: {problem}", hint=f"{hint}, from headgate.windows"
        )


@dataclass(frozen=True, slots=True, eq=False)
class WindowedStream(Explained):
    """A window operator without its aggregates."""

    _keyed: KeyedStream
    uid: str
    windows: Windows
    lateness: timedelta
    early: tuple[Trigger, ...]
    name: str | None = None

    _kind: ClassVar[str] = "a window without aggregates"
    _instead: ClassVar[Mapping[str, str]] = WINDOWED

    def aggregate(self, **aggregates: Aggregate) -> Windowed:
        """Compute these aggregates for each key and window.

        Rows of `updates` have the key columns, `window_start`, `window_end`, the aggregates,
        `partial`, `correction` and `processed_at`. Keys and arguments that are expressions are
        computed first, as with `with_columns`; rows of `late` have these columns too.

        Args:
            aggregates: Aggregates by result column: visits=count(), total=sum("price * 2").
        """
        keyed = self._keyed
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise HeadgateError(
                    "BAD_AGGREGATE",
                    f"{keyed._builder.cannot_add(f'window {self.uid!r}')}: {name} must be an "
                    f"aggregate, got {aggregate!r}",
                    hint="from headgate.windows import count, sum, min, max",
                )
        computed = self._computed(aggregates)
        before = self._before(computed)
        named = tuple(
            NamedAggregate(name, _on_column(aggregate, computed))
            for name, aggregate in aggregates.items()
        )
        port = Port(before[-1].id, "out") if before else keyed.port
        key = tuple(computed.name(column) for column in keyed.columns)
        node = Window(self.uid, port, key, self.windows, named, self.lateness, self.early)
        keyed._builder.add(*before, node, name=self.name)
        return Windowed(*_outputs(self.uid, Window.outputs, keyed._builder))

    def _computed(self, aggregates: Mapping[str, Aggregate]) -> ComputedColumns:
        keyed = self._keyed
        arguments = [aggregate.column for aggregate in aggregates.values()]
        return compute_columns(
            (*keyed.columns, *(text for text in arguments if isinstance(text, str))),
            keyed._builder.schemas[keyed.port],
            reserved=(*RESULT_COLUMNS, *aggregates),
            what=keyed._builder.cannot_add(f"window {self.uid!r}"),
        )

    def _before(self, computed: ComputedColumns) -> tuple[WithColumns, ...]:
        if not computed.columns:
            return ()
        port, builder = self._keyed.port, self._keyed._builder
        node_id = builder.free_id(port, WithColumns.operator)
        return (WithColumns(node_id, port, computed.columns),)


def _on_column(aggregate: Aggregate, computed: ComputedColumns) -> Aggregate:
    column = aggregate.column
    return aggregate if column is None else replace(aggregate, column=computed.name(column))


def _outputs(uid: str, names: Sequence[str], builder: Builder) -> list[Stream]:
    return [Stream(Port(uid, name), builder) for name in names]
