"""State of a map for each key, in pages of about 32 entries by linear hashing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any
from zlib import crc32

import pyarrow as pa

from headgate.functions.keyed import MapOf
from headgate.functions.processes.scope import Scope
from headgate.functions.python_types import Kind
from headgate.functions.states.columns import reader
from headgate.functions.states.converted import ZONE
from headgate.functions.states.map_cells import DELETED, MapCell
from headgate.functions.states.paged import PagedState
from headgate.functions.states.pages import Changes
from headgate.functions.states.plain import to_plain
from headgate.functions.stored import StoredState

_EPOCH = datetime(1970, 1, 1, tzinfo=ZONE)
_MICROSECOND = timedelta(microseconds=1)


def _time_bytes(time: datetime) -> bytes:
    return ((time - _EPOCH) // _MICROSECOND).to_bytes(8, "little", signed=True)


def _date_bytes(day: date) -> bytes:
    return day.toordinal().to_bytes(4, "little")


# PortableLayout.java has the same, and the same choice of a key's page.
_ENCODINGS: dict[Kind, Callable[[Any], bytes]] = {
    Kind.TEXT: str.encode,
    Kind.BYTES: bytes,
    Kind.INT: lambda number: int.to_bytes(number, 8, "little", signed=True),
    Kind.BOOL: lambda flag: b"\1" if flag else b"\0",
    Kind.DATE: _date_bytes,
    Kind.TIME: _time_bytes,
}


class MapState(PagedState[MapCell], MapOf[Any, Any]):
    """The maps of all keys of a call."""

    def __init__(
        self, scope: Scope, stored: StoredState, var: int, kind: pa.DataType, page: pa.Schema
    ) -> None:
        assert stored.key is not None
        super().__init__(
            scope, stored, var, kind, page, read=self._read, new_cell=MapCell, oldest=2
        )
        self._plain_key = to_plain(stored.key, f"{stored.name}: key")
        self._encode = _ENCODINGS[stored.key.kind]
        self._readers = [reader(field.type) for field in page]

    def __getitem__(self, key: Any) -> Any:
        plain = self._find(self._plain_key(key))
        if plain is DELETED:
            raise KeyError(key)
        return plain if self._make is None else self._make(plain)

    def get(self, key: Any, default: Any = None) -> Any:
        plain = self._find(self._plain_key(key))
        if plain is DELETED:
            return default
        return plain if self._make is None else self._make(plain)

    def __contains__(self, key: object) -> bool:
        return self._find(self._plain_key(key)) is not DELETED

    def __setitem__(self, key: Any, value: Any) -> None:
        self._put(self._plain_key(key), self._plain(value))

    def __delitem__(self, key: Any) -> None:
        plain_key = self._plain_key(key)
        if self._find(plain_key) is DELETED:
            raise KeyError(key)
        self._put(plain_key, DELETED)

    def pop(self, key: Any, /, *default: Any) -> Any:
        if len(default) > 1:
            raise TypeError(f"pop takes a key and a default, got {1 + len(default)} arguments")
        plain_key = self._plain_key(key)
        plain = self._find(plain_key)
        if plain is DELETED:
            if default:
                return default[0]
            raise KeyError(key)
        self._put(plain_key, DELETED)
        return plain if self._make is None else self._make(plain)

    def clear(self) -> None:
        scope = self._scope
        cell = self._cell(scope.at)
        if scope.journal is not None:
            scope.journal.append((cell.restore, cell.changes()))
        cell.clear()
        scope.changed[scope.at] = 1

    def __len__(self) -> int:
        at = self._scope.at
        cell = self._cell(at)
        if cell.is_cleared or not cell.size:
            return cell.living
        if cell.stored_living is None:
            if self._ttl is None or (cell.oldest or 0) > self._scope.now_ms:
                cell.stored_living = cell.size
            else:
                self._need(at, cell, range(cell.count))
                cell.stored_living = sum(1 for _ in cell.stored(self._now()))
        if cell.unresolved:
            numbers = {self._number(key, cell.count) for key in cell.unresolved}
            self._need(at, cell, sorted(numbers))
            for key in list(cell.unresolved):
                page = cell.pages[self._number(key, cell.count)]
                cell.resolve(key, is_stored=self._living(page, key) is not DELETED)
        return cell.stored_living + cell.living - cell.replaced

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> list[Any]:
        return [key for key, _ in self._all()]

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Any, Any]]:
        make = self._make
        if make is None:
            return self._all()
        return [(key, make(plain)) for key, plain in self._all()]

    def purge(self, at: int) -> None:
        """Remove the expired entries of a key when the call is settled."""
        meta = self._metas[at]
        if self._ttl is not None and meta is not None and (meta[2] or 0) <= self._scope.now_ms:
            self._cell(at).is_purged = True

    def settle(self) -> Changes:
        """Return the pages that the call has changed; the columns are as after it then."""
        changes = Changes()
        dirty = [
            (at, cell)
            for at, cell in enumerate(self._cells)
            if cell is not None and (cell.pending or cell.is_cleared or cell.is_purged)
        ]
        self._fetch([(at, n) for at, cell in dirty for n in self._touched(cell)])
        for _, cell in dirty:
            cell.apply(self._number, self._scope.now_ms, self._ttl)
        self._fetch([(at, n) for at, cell in dirty for n in cell.moved()])
        for at, cell in dirty:
            cell.resize(self._number)
            self._metas[at] = cell.write(at, changes, self._ttl)
        return changes

    def batch(self, changes: Changes) -> pa.RecordBatch:
        """Return changed pages as a batch."""
        rows = [
            (None, None, None)
            if page is None
            else (list(page[0]), list(page[0].values()), page[1] and list(page[1].values()))
            for page in changes.pages
        ]
        return self._batch(rows)

    def _number(self, key: Any, count: int) -> int:
        """Return the page of a key in a map of so many pages."""
        if count == 1:
            return 0
        hashed = crc32(self._encode(key))
        bits = (count - 1).bit_length()
        number = hashed & (1 << bits) - 1
        return number if number < count else hashed & (1 << bits - 1) - 1

    def _now(self) -> int | None:
        return None if self._ttl is None else self._scope.now_ms

    def _living(self, page: Any, key: Any) -> Any:
        """Return the value of a key in a page; DELETED without one."""
        if page is None:
            return DELETED
        values, expires = page
        plain = values.get(key, DELETED)
        if plain is not DELETED and expires is not None and expires[key] <= self._scope.now_ms:
            return DELETED
        return plain

    def _find(self, key: Any) -> Any:
        """Return the plain value of a key; DELETED without one."""
        at = self._scope.at
        cell = self._cells[at] or self._cell(at)
        if key in cell.pending:
            return cell.pending[key]
        if cell.is_cleared or not cell.size:
            return DELETED
        number = self._number(key, cell.count)
        if number not in cell.pages:
            self._need(at, cell, (number,))
        return self._living(cell.pages[number], key)

    def _put(self, key: Any, plain: Any) -> None:
        scope = self._scope
        cell = self._cells[scope.at] or self._cell(scope.at)
        old = cell.put(key, plain)
        if scope.journal is not None:
            scope.journal.append((cell.undo, key, old))
        scope.changed[scope.at] = 1

    def _all(self) -> list[tuple[Any, Any]]:
        """Return all entries that have not expired, in an order that depends on the keys alone."""
        at = self._scope.at
        cell = self._cell(at)
        entries: dict[Any, Any] = {}
        if not cell.is_cleared and cell.size:
            self._need(at, cell, range(cell.count))
            entries.update(cell.stored(self._now()))
        entries.update(cell.pending)
        encode = self._encode
        keyed = [
            (crc32(code := encode(key)), code, key, plain)
            for key, plain in entries.items()
            if plain is not DELETED
        ]
        keyed.sort(key=lambda entry: entry[:2])
        return [entry[2:] for entry in keyed]

    def _touched(self, cell: MapCell) -> list[int]:
        """Return the pages that are not here, and that changes of a map need."""
        if cell.is_cleared or not cell.size:
            return []
        if cell.is_purged:
            return [number for number in range(cell.count) if number not in cell.pages]
        numbers = {self._number(key, cell.count) for key in cell.pending}
        return sorted(numbers - cell.pages.keys())

    def _fetch(self, missing: list[tuple[int, int]]) -> None:
        self.pages.fetch(missing, self._cells.__getitem__)

    def _read(self, batch: pa.RecordBatch) -> list[Any]:
        columns = [read(batch.column(i)) for i, read in enumerate(self._readers)]
        pages: list[Any] = []
        # Entries that were stored without a time to live are as good as new.
        new = self._scope.now_ms + (self._ttl or 0)
        for keys, values, expires in zip(*columns, strict=True):
            if keys is None:
                pages.append(None)
                continue
            times = None
            if self._ttl is not None:
                times = dict(zip(keys, expires or [new] * len(keys), strict=True))
            pages.append((dict(zip(keys, values, strict=True)), times))
        return pages
