"""Lists and maps of the keys of a call: what is stored of each, and the cells of those in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from headgate.functions.calling.messages import array_of
from headgate.functions.processes.scope import Scope
from headgate.functions.states.columns import reader
from headgate.functions.states.pages import Cell, FetchPages, Pages
from headgate.functions.states.plain import from_plain, to_plain
from headgate.functions.stored import StoredState

C = TypeVar("C", bound=Cell)


class PagedState(Generic[C]):
    """The lists or maps of all keys of a call.

    Args:
        kind: The type of a key's record.
        page: The columns of a page.
        read: Turns a batch into pages.
        new_cell: Returns the list or map of a key, from its record.
        oldest: Where a record has the time of its oldest item.
    """

    def __init__(
        self,
        scope: Scope,
        stored: StoredState,
        var: int,
        kind: pa.DataType,
        page: pa.Schema,
        *,
        read: Callable[[pa.RecordBatch], list[Any]],
        new_cell: Callable[[tuple[Any, ...] | None], C],
        oldest: int,
    ) -> None:
        self.name = stored.name
        self._scope = scope
        self._ttl = stored.ttl
        self.has_ttl = stored.ttl is not None
        self._kind = kind
        self._page = page
        self._plain = to_plain(stored.value, stored.name)
        self._make = from_plain(stored.value)
        self._new_cell = new_cell
        self._oldest = oldest
        self._metas: list[Any] = []
        self._cells: list[C | None] = []
        self.pages: Pages[Any] = Pages(var, read)

    def load(self, column: pa.Array, fetch: FetchPages) -> None:
        """Take the records of a call."""
        count = len(column)
        self.pages.begin(fetch)
        self._cells = [None] * count
        self._metas = [None] * count if column.null_count == count else reader(column.type)(column)

    def earliest(self, at: int) -> int | None:
        """Return when the state of a key is to be cleaned up, or None for never."""
        meta = self._metas[at]
        if self._ttl is None or meta is None:
            return None
        oldest: int | None = meta[self._oldest]
        return (self._scope.now_ms + self._ttl if oldest is None else oldest) + self._ttl // 4

    def column(self, places: Sequence[int]) -> pa.Array:
        """Return what is stored of the keys at some places."""
        return pa.array([self._metas[at] for at in places], self._kind)

    def _batch(self, rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
        """Return pages as a batch."""
        arrays = [
            array_of(column, field.type, f"{self.name!r} of the keys of one call")
            for column, field in zip(zip(*rows, strict=True), self._page, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._page)

    def _cell(self, at: int) -> C:
        cell = self._cells[at]
        if cell is None:
            cell = self._cells[at] = self._new_cell(self._metas[at])
        return cell

    def _need(self, at: int, cell: C, numbers: Iterable[int]) -> None:
        self.pages.load(at, cell, numbers, self._cell, len(self._cells))
