"""Streams: the values that users chain operators on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headgate.errors import HeadgateError
from headgate.flow.builder import Builder
from headgate.flow.columns import check_expression, parse_column
from headgate.flow.keyed import KeyedStream, WindowedStream
from headgate.flow.names import check_column_name, did_you_mean
from headgate.flow.operators import (
    Column,
    Dedupe,
    Enrich,
    Output,
    OutputFormat,
    Port,
    Select,
    Transform,
    Where,
    WithColumns,
)
from headgate.flow.outputs import Deduped, Enriched
from headgate.flow.schema import Schema, schema_of
from headgate.flow.table import Table
from headgate.flow.topics import Topic, as_topic
from headgate.flow.triggers import Trigger
from headgate.flow.windowing import Windows, parse_span


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The rows of one output port; every operator adds a node and returns a new stream."""

    port: Port
    _builder: Builder

    @property
    def schema(self) -> Schema:
        """The columns of a row, as far as they are known without Spark."""
        return self._builder.schemas[self.port]

    def enrich(self, uid: str, table: Table, *, on: str | Sequence[str], into: str) -> Enriched:
        """Add the table row with the same key to each event, as the column `into`.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            table: A table of the same flow.
            on: The columns with the table's key, in the key's order; dotted paths work.
            into: The name of the new column, a struct with the table's columns.
        """
        what = self._builder.cannot_add(f"enrich {uid!r}")
        if not isinstance(table, Table) or table._builder is not self._builder:
            raise HeadgateError(
                "TABLE_FOREIGN",
                f"{what}: its table is not a table of this flow",
                hint="create it with this flow: flow.table('users', User, key='id')",
            )
        columns = (on,) if isinstance(on, str) else tuple(on)
        self._builder.add(Enrich(uid, self.port, table.id, columns, into))
        return Enriched(
            matched=self._at(Port(uid, "matched")), missing=self._at(Port(uid, "missing"))
        )

    def key_by(self, *columns: str) -> KeyedStream:
        """Group events by key for `window`.

        Args:
            columns: One or more; dotted paths work.
        """
        if not columns or not all(isinstance(column, str) for column in columns):
            raise HeadgateError(
                "KEY_MISMATCH",
                f"{self._builder.cannot_add('key_by')}: it needs at least one column",
                hint="name one or more columns: key_by('shop', 'user.id'); for all events together "
                "call window without key_by",
            )
        return KeyedStream(self.port, columns, self._builder, self._at)

    def window(
        self,
        uid: str,
        windows: Windows,
        *,
        allowed_lateness: str | timedelta = "0s",
        early: Trigger | Sequence[Trigger] = (),
    ) -> WindowedStream:
        """Cut all events into windows of event time, without keys; a single task does it.

        Args:
            uid: The permanent id of the operator's state.
            windows: As in `KeyedStream.window`, like the other arguments.
        """
        together = KeyedStream(self.port, (), self._builder, self._at)
        return together.window(uid, windows, allowed_lateness=allowed_lateness, early=early)

    def dedupe(self, uid: str, *, by: str | Sequence[str], within: str | timedelta) -> Deduped:
        """Pass the first event of each key and separate the duplicates.

        Args:
            uid: The permanent id of the operator's state; keep it to keep the state.
            by: The column or columns that identify duplicates; dotted paths work.
            within: Events of one key closer than this in event time are duplicates.
        """
        columns = (by,) if isinstance(by, str) else tuple(by)
        self._builder.add(Dedupe(uid, self.port, columns, parse_span(within, f"dedupe {uid!r}")))
        return Deduped(
            unique=self._at(Port(uid, "unique")),
            repeated=self._at(Port(uid, "repeated")),
            late=self._at(Port(uid, "late")),
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

    def transform(self, function: str, schema: type | str | Schema | None = None) -> Stream:
        """Call a function on the rows as a DataFrame, for stateless work that SQL cannot express.

        It is refused after an operator with state.

        Args:
            function: "module:function"; takes a DataFrame and returns one. It must work row by row:
                no aggregation, no join of streams.
            schema: The columns it returns; by default the columns it receives.
        """
        node_id, _ = self._named(Transform.operator)
        returned = self.schema if schema is None else schema_of(schema)
        return self._add(Transform(node_id, self.port, function, returned))

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
        self._builder.add(Output(target.name, self.port, target, key, _format(format, what)))

    def _named(self, operator: str) -> tuple[str, str]:
        node_id = self._builder.free_id(self.port, operator)
        return node_id, self._builder.cannot_add(f"{operator} {node_id!r}")

    def _at(self, port: Port) -> Stream:
        return Stream(port, self._builder)

    def _add(self, node: Select | Where | WithColumns | Transform) -> Stream:
        self._builder.add(node)
        return self._at(Port(node.id, "out"))


def _format(text: str, what: str) -> OutputFormat:
    try:
        return OutputFormat(text)
    except ValueError:
        raise HeadgateError(
            "BAD_OUTPUT",
            f"{what}: format must be 'json' or 'text', got {text!r}",
            hint=did_you_mean(str(text), list(OutputFormat)),
        ) from None
