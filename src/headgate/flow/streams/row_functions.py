"""Operators of a stream that call a function of the user with its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

from headgate.errors import HeadgateError
from headgate.flow.building.builder import Builder
from headgate.flow.names import parse_member
from headgate.flow.operators.nodes import (
    Filter,
    FlatMap,
    Map,
    MapBatches,
    OnError,
    Port,
    Rebalance,
    Select,
    Transform,
    Union,
    Where,
    WithColumns,
)
from headgate.flow.schemas.schema import Schema, schema_of
from headgate.flow.schemas.signatures import Signature, read_signature, result_schema
from headgate.flow.streams.missing_methods import (
    Explained,
)
from headgate.functions.stored import Callback, RowType, describe


@dataclass(frozen=True, slots=True, eq=False)
class RowFunctions(Explained):
    """A stream as far as it calls functions."""

    port: Port
    _builder: Builder

    @property
    def schema(self) -> Schema:
        """The columns of a row, as far as they are known without Spark."""
        return self._builder.schemas[self.port]

    def transform(
        self, function: str | Callable[[Any], Any], schema: type | str | Schema | None = None
    ) -> Self:
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
    ) -> Self:
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
    ) -> Self:
        """Replace each row by those that a Python function returns: none, one or several.

        Args:
            uid: The permanent id of the operator.
            function: Like that of `map`, but returns a list or yields.
            schema: As in `map`, like `on_error` and `name`.
        """
        return self._call(FlatMap, uid, function, schema, on_error, name)

    def filter(
        self, function: Callable[[Any], Any], *, on_error: str = "fail", name: str | None = None
    ) -> Self:
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
    ) -> Self:
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

    def _call(
        self,
        kind: type[Map | FlatMap | Filter | MapBatches],
        uid: str,
        function: Callable[[Any], Any],
        schema: type | str | Schema | None,
        on_error: str,
        name: str | None,
    ) -> Self:
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
        return self._at(Port(uid, "out"))

    def _named(self, operator: str) -> tuple[str, str]:
        node_id = self._builder.free_id(self.port, operator)
        return node_id, self._builder.cannot_add(f"{operator} {node_id!r}")

    def _add(self, node: Select | Where | WithColumns | Transform | Union | Rebalance) -> Self:
        self._builder.add(node)
        return self._at(Port(node.id, "out"))

    def _at(self, port: Port) -> Self:
        return replace(self, port=port)
