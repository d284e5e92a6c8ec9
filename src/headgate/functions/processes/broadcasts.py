"""The rows of a broadcast in a worker: read once, and again when they have changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from headgate.functions.broadcast import BroadcastContext
from headgate.functions.calling.rows import row_reader
from headgate.functions.processes.scope import Scope
from headgate.functions.processes.wire import Fetch
from headgate.functions.states.columns import reader
from headgate.functions.states.pages import FetchPages
from headgate.functions.stored import BroadcastCallback, ProcessCallback, RowType

_NONE: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BroadcastShape:
    """The columns of a broadcast's rows, and which of them are the key."""

    schema: pa.Schema
    key: tuple[str, ...]


class BroadcastScope(Scope, BroadcastContext[Any, Any]):
    """The context of a process that sees a broadcast.

    Attributes:
        rows: The rows of the broadcast, by key.
    """

    __slots__ = ("rows",)

    def __init__(self, *, has_timers: bool, name: str) -> None:
        super().__init__(has_timers=has_timers, name=name)
        self.rows: Mapping[Any, Any] = _NONE

    @property
    def broadcast(self) -> Mapping[Any, Any]:
        return self.rows


class BroadcastRows:
    """The rows of one broadcast, as the context of a process shows them.

    The kernel sends a sum of all rows with each call, and the rows only to a worker that asks.
    """

    def __init__(self, shape: BroadcastShape, rule: RowType, scope: BroadcastScope) -> None:
        self._scope = scope
        self._shape = shape
        self._names = _names_of(rule, shape.schema)
        self._read = row_reader(pa.schema([shape.schema.field(name) for name in self._names]), rule)
        self._version = b""

    def load(self, version: bytes, fetch: FetchPages, var: int) -> None:
        """Have the context show the rows of a version, in the order of their keys.

        Args:
            var: The number by which the kernel knows them.
        """
        if version != self._version:
            batch = fetch(Fetch(var, [], []))
            self._scope.rows = MappingProxyType(self._by_key(batch))
            self._version = version

    def _by_key(self, batch: pa.RecordBatch) -> dict[Any, Any]:
        keys = [reader(column.type)(column) for column in map(batch.column, self._shape.key)]
        texts = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        return dict(
            sorted(
                zip(texts, self._read(batch.select(self._names)), strict=True), key=itemgetter(0)
            )
        )


def _names_of(rule: RowType, schema: pa.Schema) -> list[str]:
    """Return the columns that a rule has in Python: the fields of its dataclass, or all."""
    if not dataclasses.is_dataclass(rule.make):
        return list(schema.names)
    return [field.name for field in dataclasses.fields(rule.make) if field.name in schema.names]


def scope_of(callback: ProcessCallback, *, has_timers: bool, name: str) -> Scope:
    """Return the context of a process."""
    kind = BroadcastScope if isinstance(callback, BroadcastCallback) else Scope
    return kind(has_timers=has_timers, name=name)


def rules_of(
    callback: ProcessCallback, shape: BroadcastShape | None, scope: Scope
) -> BroadcastRows | None:
    """Return the rows of a process's broadcast; None if it has none."""
    if shape is None or not isinstance(callback, BroadcastCallback):
        return None
    assert isinstance(scope, BroadcastScope), "it is made for the same callback"
    return BroadcastRows(shape, callback.rule, scope)
