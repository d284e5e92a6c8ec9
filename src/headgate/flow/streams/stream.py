"""Streams: the values that users chain operators on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.errors import HeadgateError
from headgate.flow.building.async_calling import call_node
from headgate.flow.building.broadcasting import check_broadcast
from headgate.flow.building.builder import Builder
from headgate.flow.building.joining import join_node, not_a_stream
from headgate.flow.building.writing import add_outputs
from headgate.flow.formats.custom import Encoder
from headgate.flow.formats.format import Format
from headgate.flow.formats.registry import Registry
from headgate.flow.graph.unions import check_streams
from headgate.flow.names import check_column_name
from headgate.flow.operators.columns import check_expression, parse_column
from headgate.flow.operators.nodes import (
    AsyncCall,
    Column,
    Dedupe,
    Enrich,
    Join,
    Label,
    Port,
    Rebalance,
    Select,
    Union,
    Where,
    WithColumns,
)
from headgate.flow.operators.windowing import (
    Trigger,
    Windows,
    parse_span,
)
from headgate.flow.schemas.schema import Schema
from headgate.flow.streams.missing_methods import (
    STREAM,
)
from headgate.flow.streams.outputs import (
    Called,
    Deduped,
    Enriched,
    Joined,
    Labelled,
    Processed,
)
from headgate.flow.streams.row_functions import RowFunctions
from headgate.flow.streams.tables import Broadcast, Table
from headgate.flow.topics import Topic
from headgate.functions.broadcast import BroadcastProcess

if TYPE_CHECKING:
    from headgate.flow.streams.keyed import KeyedStream
    from headgate.flow.streams.windowed import WindowedStream


@dataclass(frozen=True, slots=True, eq=False)
class Stream(RowFunctions):
    """The rows of one output port; every operator adds a node and returns a new stream."""

    _kind: ClassVar[str] = "a stream"
    _instead: ClassVar[Mapping[str, str]] = STREAM

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
        return Enriched(*outputs(uid, Enrich.outputs, self._builder))

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
        return self._keyed(columns)

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
        return self._keyed(()).window(
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
        return Deduped(*outputs(uid, Dedupe.outputs, self._builder))

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
        return Joined(*outputs(uid, Join.outputs, self._builder))

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
        return Labelled(self._at(Port(uid, "out")))

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
        return self._keyed(()).with_broadcast(
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
        return Called(*outputs(uid, AsyncCall.outputs, self._builder))

    def to(
        self,
        topic: str | Topic | Sequence[str | Topic],
        *,
        key: str | None = None,
        format: str | Format | Encoder | None = None,  # noqa: A002 - the word for it
        registry: str | Registry | None = None,
    ) -> None:
        """Write the rows to a topic, or to each topic of a list in the same epoch.

        Args:
            topic: A name, or a topic bound to one place; of a list, all are added or none.
            key: The column whose text is the message key; dotted paths work. Logs with keys keep
                the rows of one key in order and compact by it.
            format: The format of the records: a name, such as "json" for an object per row, "csv"
                or "upsert", a value of `headgate.formats`, or an object with `encode`.
            registry: The schema registry of an Avro format, as in `Flow.stream`.
        """
        add_outputs(self._builder, self.port, topic, key=key, form=format, registry=registry)

    def _keyed(self, columns: tuple[str, ...]) -> KeyedStream:
        # Keyed streams import this module: their operators return streams.
        from headgate.flow.streams.keyed import KeyedStream

        return KeyedStream(self.port, columns, self._builder)


def outputs(uid: str, names: Sequence[str], builder: Builder) -> list[Stream]:
    """Return the outputs of an operator as streams."""
    return [Stream(Port(uid, name), builder) for name in names]
