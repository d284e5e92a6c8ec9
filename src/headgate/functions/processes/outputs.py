"""What a process emits in a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from headgate.functions.calling.messages import array_of
from headgate.functions.keyed import Emitter
from headgate.functions.processes.scope import Scope
from headgate.functions.processes.wire import pack_ints
from headgate.functions.python_types import Kind, PythonType
from headgate.functions.states.columns import type_of
from headgate.functions.states.plain import row_emitter


class Output(Emitter):
    """An output: the rows of a call in plain form, column by column, and the origin of each."""

    def __init__(self, scope: Scope, schema: pa.Schema) -> None:
        fields = tuple((field.name, type_of(field)) for field in schema)
        self._columns: list[list[Any]] = [[] for _ in fields]
        self.origins: list[int] = []
        self._schema = schema
        self._by_class: dict[type, Callable[[Any], None]] = {}
        self._names = {
            **{f"add{i}": column.append for i, column in enumerate(self._columns)},
            "add": self._add,
            "mark": self.origins.append,
            "scope": scope,
            "other": self._emit,
        }
        self._type = PythonType(Kind.STRUCT, fields=fields)
        self.emit = self._emit  # type: ignore[method-assign]

    def _emit(self, row: Any) -> None:
        kind = type(row)
        emit = self._by_class.get(kind)
        if emit is None:
            emit = self._by_class[kind] = row_emitter(self._type, kind, self._names)
            # Most processes emit rows of one class: the next call begins with it.
            self.emit = emit  # type: ignore[assignment, method-assign]
        emit(row)

    def _add(self, plain: Sequence[Any]) -> None:
        for column, value in zip(self._columns, plain, strict=True):
            column.append(value)

    def begin(self) -> None:
        """Forget the rows of the last call."""
        self.undo(0)

    def undo(self, length: int) -> None:
        """Drop the rows behind so many."""
        for column in (*self._columns, self.origins):
            del column[length:]

    def rows(self) -> list[tuple[tuple[Any, ...], int]]:
        """Return the rows of the call, each with its origin."""
        return list(zip(zip(*self._columns, strict=True), self.origins, strict=True))

    def sections(self) -> list[bytes]:
        """Return the sections of a reply."""
        if not self.origins:
            return [b"", b""]
        arrays = [
            array_of(column, field.type, f"column {field.name!r} of the rows of one call")
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return [pack_ints(self.origins), batch.serialize()]


class Unused(Emitter):
    """An output that the flow does not use: its rows go nowhere."""

    def emit(self, row: Any) -> None:
        pass


class Outputs:
    """All outputs of a process, in declared order."""

    def __init__(self, scope: Scope, schemas: Sequence[tuple[str, pa.Schema]], name: str) -> None:
        self._name = name
        self._outputs = {port: Output(scope, schema) for port, schema in schemas}
        self.all = list(self._outputs.values())
        self._main: Emitter = self._outputs.get("out") or Unused()
        self._scope = scope

    def begin(self) -> None:
        """Forget the rows of the last call."""
        self._scope.attach(self._main.emit, self._side)
        for output in self.all:
            output.begin()

    def lengths(self) -> list[int]:
        """Return how many rows each output has."""
        return [len(output.origins) for output in self.all]

    def undo(self, lengths: Sequence[int]) -> None:
        """Drop the rows behind so many of each output."""
        for output, length in zip(self.all, lengths, strict=True):
            output.undo(length)

    def _side(self, name: str) -> Output:
        output = self._outputs.get(name)
        if output is None or name == "out":
            sides = sorted(port for port in self._outputs if port != "out")
            raise LookupError(
                f"{self._name} has no side output {name!r}: the flow reads "
                f"{', '.join(map(repr, sides)) or 'none'}"
            )
        return output
