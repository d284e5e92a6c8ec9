"""State of a list for each key, in pages of 64 items."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headgate.functions.calling.results import BadResult
from headgate.functions.keyed import ListOf
from headgate.functions.processes.scope import Scope
from headgate.functions.states.columns import reader
from headgate.functions.states.paged import PagedState
from headgate.functions.states.pages import Changes
from headgate.functions.stored import StoredState

ITEMS = 64

# The items of a page, and when each expires.
_Page = tuple[Sequence[Any], Sequence[int] | None]


class _Cell:
    """The list of a key: what is stored, and what this call has changed.

    Attributes:
        first, next: The stored pages are those from first to next - 1.
        size: The number of stored items.
        oldest: When the first stored item expires.
        is_cleared: True if this call has removed what is stored.
        pending: What this call has added, in plain form.
        head: The first page with an item that has not expired; None if that is not known yet.
        skipped: How many of its items have expired.
        expired: How many stored items have expired.
    """

    __slots__ = (
        "expired",
        "first",
        "head",
        "is_cleared",
        "is_purged",
        "next",
        "oldest",
        "pages",
        "pending",
        "size",
        "skipped",
    )

    def __init__(self, stored: tuple[Any, ...] | None) -> None:
        self.first, self.next, self.size, self.oldest = stored or (0, 0, 0, None)
        self.is_cleared = self.is_purged = False
        self.pending: list[Any] = []
        self.pages: dict[int, Any] = {}
        self.head: int | None = None
        self.skipped = 0
        self.expired = 0

    def likely(self) -> int | None:
        last: int = self.next - 1
        if self.is_cleared or last < self.first or last in self.pages:
            return None
        return last


class ListState(PagedState[_Cell], ListOf[Any]):
    """The lists of all keys of a call."""

    def __init__(
        self, scope: Scope, stored: StoredState, var: int, kind: pa.DataType, page: pa.Schema
    ) -> None:
        super().__init__(scope, stored, var, kind, page, read=self._read, new_cell=_Cell, oldest=3)
        self._read_items = reader(page.field(0).type)

    def append(self, item: Any) -> None:
        plain = self._plain(item)
        scope = self._scope
        cell = self._cells[scope.at] or self._cell(scope.at)
        cell.pending.append(plain)
        if scope.journal is not None:
            scope.journal.append((cell.pending.pop,))
        scope.changed[scope.at] = 1

    def extend(self, items: Iterable[Any]) -> None:
        for plain in self._plains(items):
            cell = self._cell(self._scope.at)
            cell.pending.append(plain)
            if self._scope.journal is not None:
                self._scope.journal.append((cell.pending.pop,))
            self._scope.changed[self._scope.at] = 1

    def set(self, items: Iterable[Any]) -> None:
        self._replace(self._plains(items))

    def clear(self) -> None:
        self._replace([])

    def tail(self, count: int) -> list[Any]:
        if count < 0:
            raise ValueError(f"tail takes a number of items, got {count}")
        at = self._scope.at
        cell = self._cell(at)
        plains = cell.pending[-count:] if count else []
        missing = count - len(plains)
        if missing and not cell.is_cleared and cell.size:
            # Only the first and the last page may have less than 64 items.
            start = max(cell.first, cell.next - 1 - -(-missing // ITEMS))
            plains = [*self._stored(at, cell, start)[-missing:], *plains]
        make = self._make
        return plains if make is None else [make(plain) for plain in plains]

    def __iter__(self) -> Iterator[Any]:
        at = self._scope.at
        cell = self._cell(at)
        plains = list(cell.pending)
        if not cell.is_cleared and cell.size:
            plains[:0] = self._stored(at, cell, cell.first)
        return iter(plains) if self._make is None else map(self._make, plains)

    def __len__(self) -> int:
        at = self._scope.at
        cell = self._cell(at)
        if cell.is_cleared:
            return len(cell.pending)
        self._trim(at, cell)
        size: int = cell.size - cell.expired + len(cell.pending)
        return size

    def __bool__(self) -> bool:
        return bool(self._cell(self._scope.at).pending) or len(self) > 0

    def purge(self, at: int) -> None:
        """Remove the expired items of a key when the call is settled."""
        if self._ttl is not None and self._metas[at] is not None:
            self._cell(at).is_purged = True

    def settle(self) -> Changes:
        """Return the pages that the call has changed; the columns are as after it then."""
        changes = Changes()
        dirty = [
            (at, cell)
            for at, cell in enumerate(self._cells)
            if cell is not None and (cell.pending or cell.is_cleared or cell.is_purged)
        ]
        missing = [
            (at, cell.next - 1) for at, cell in dirty if cell.pending and cell.likely() is not None
        ]
        self.pages.fetch(missing, self._cells.__getitem__)
        for at, cell in dirty:
            self._metas[at] = self._write(at, cell, changes)
        return changes

    def batch(self, changes: Changes) -> pa.RecordBatch:
        """Return changed pages as a batch."""
        return self._batch(page or (None, None) for page in changes.pages)

    def _plains(self, items: Iterable[Any]) -> list[Any]:
        if isinstance(items, str | bytes) or not hasattr(items, "__iter__"):
            raise BadResult(f"{self.name!r} must be a list, got {type(items).__name__}")
        return [self._plain(item) for item in items]

    def _replace(self, plains: list[Any]) -> None:
        scope = self._scope
        cell = self._cell(scope.at)
        if scope.journal is not None:
            scope.journal.append((_restore, cell, cell.is_cleared, cell.pending))
        cell.is_cleared = True
        cell.pending = plains
        scope.changed[scope.at] = 1

    def _stored(self, at: int, cell: _Cell, start: int) -> list[Any]:
        """Return the stored items that have not expired, from a page on."""
        self._need(at, cell, range(start, cell.next))
        plains: list[Any] = []
        now = self._scope.now_ms
        for number in range(start, cell.next):
            items, expires = cell.pages[number] or ((), None)
            if expires is not None and self._ttl is not None and len(items) and expires[0] <= now:
                items = items[bisect_right(expires, now) :]
            plains.extend(items)
        return plains

    def _trim(self, at: int, cell: _Cell) -> None:
        """Find the first stored item that has not expired."""
        if self._ttl is None or cell.head is not None or not cell.size:
            return
        now = self._scope.now_ms
        if cell.oldest is None or cell.oldest > now:
            return
        number, step = cell.first, 1
        while number < cell.next:
            # Few have expired as a rule; if not, fewer and larger messages.
            self._need(at, cell, range(number, min(cell.next, number + step)))
            for number in range(number, min(cell.next, number + step)):  # noqa: B020 - goes on
                items, expires = cell.pages[number] or ((), None)
                gone = bisect_right(expires, now) if expires is not None else 0
                if gone < len(items):
                    cell.head, cell.skipped = number, gone
                    cell.expired += gone
                    return
                cell.expired += len(items)
            number += 1
            step = min(step * 4, 256)
        cell.head = cell.next

    def _read(self, batch: pa.RecordBatch) -> list[_Page | None]:
        rows = self._read_items(batch.column(0))
        times = batch.column(1).to_pylist()
        if self._ttl is None:
            return [None if row is None else (row, None) for row in rows]
        # Items that were stored without a time to live are as good as new.
        new = self._scope.now_ms + self._ttl
        return [
            None if row is None else (row, time or [new] * len(row))
            for row, time in zip(rows, times, strict=True)
        ]

    def _write(self, at: int, cell: _Cell, changes: Changes) -> tuple[Any, ...] | None:
        """Note the pages of a list that have changed, and return what its record says."""
        if cell.is_purged and not cell.is_cleared:
            self._trim(at, cell)
        first = cell.first if cell.head is None else cell.head
        kept = 0 if cell.is_cleared else cell.size - cell.expired
        if not kept:
            return self._write_new(at, cell, changes)
        for number in range(cell.first, first):
            changes.add(at, number, None)
        last = cell.next - 1
        oldest = cell.oldest
        if cell.skipped:
            items, expires = cell.pages[first]
            cell.pages[first] = items[cell.skipped :], expires[cell.skipped :]
        if cell.head is not None:
            oldest = cell.pages[first][1][0]
            if cell.skipped and not (cell.pending and first == last):
                changes.add(at, first, cell.pages[first])
        end = cell.next
        if cell.pending:
            items, expires = cell.pages[last] or ((), None)
            time = None
            if self._ttl is not None:
                # In order, even if a clock was set back.
                time = max(self._scope.now_ms + self._ttl, expires[-1] if expires else 0)
                oldest = time if oldest is None else oldest
            if len(items) < ITEMS:
                end = last
            else:
                items, expires = (), None
            times = None if time is None else [*(expires or ()), *[time] * len(cell.pending)]
            end = _cut(at, end, [*items, *cell.pending], times, changes)
        return first, end, kept + len(cell.pending), oldest if self._ttl is not None else None

    def _write_new(self, at: int, cell: _Cell, changes: Changes) -> tuple[Any, ...] | None:
        """Note the pages of a list of which nothing stored is left."""
        count = -(-len(cell.pending) // ITEMS)
        for number in range(cell.first, cell.next):
            if number >= count:
                changes.add(at, number, None)
        if not cell.pending:
            return None
        time = None if self._ttl is None else self._scope.now_ms + self._ttl
        times = None if time is None else [time] * len(cell.pending)
        end = _cut(at, 0, cell.pending, times, changes)
        return 0, end, len(cell.pending), time


def _cut(
    at: int, number: int, items: Sequence[Any], times: Sequence[int] | None, changes: Changes
) -> int:
    """Note items as pages, and return the number behind the last."""
    for start in range(0, len(items), ITEMS):
        part = slice(start, start + ITEMS)
        changes.add(at, number, (items[part], None if times is None else times[part]))
        number += 1
    return number


def _restore(cell: _Cell, is_cleared: bool, pending: list[Any]) -> None:
    cell.is_cleared = is_cleared
    cell.pending = pending
