"""The map of one key in a call: what is stored, and what the call changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headgate.functions.states.pages import Changes

DELETED: Any = type("Deleted", (), {"__repr__": lambda _: "deleted"})()
# Entries of a page: as many on average where pages are added, and where they are taken away.
_FULL = 32
_SPARSE = 8

# Returns the page of a key among so many.
Number = Callable[[Any, int], int]


class MapCell:
    """A map.

    Attributes:
        size: The number of stored entries, with those that have expired.
        count: The number of stored pages; some may be empty, and are not stored then.
        oldest: No stored entry expires earlier.
        pages: The values of each page by key, and when they expire; as stored until `apply`.
        is_cleared: True if this call has removed what is stored.
        pending: What this call has set or deleted.
        living: How many of these are set.
        replaced: How many of these are stored too, as far as that is known.
        unresolved: Those of which it is not known.
        stored_living: How many stored entries have not expired; None if that is not known.
    """

    __slots__ = (
        "_dirty",
        "_is_stored",
        "_target",
        "count",
        "is_cleared",
        "is_purged",
        "living",
        "oldest",
        "pages",
        "pending",
        "replaced",
        "size",
        "stored_living",
        "unresolved",
    )

    def __init__(self, stored: tuple[Any, ...] | None) -> None:
        self.size: int
        self.count: int
        self.oldest: int | None
        self.size, self.count, self.oldest = stored or (0, 1, None)
        self.is_cleared = self.is_purged = False
        self.pages: dict[int, Any] = {}
        self.stored_living: int | None = None
        self._dirty: set[int] = set()
        self._target = 0
        self._reset()

    def _reset(self) -> None:
        self.pending: dict[Any, Any] = {}
        self.living = self.replaced = 0
        self.unresolved: dict[Any, None] = {}
        self._is_stored: dict[Any, bool] = {}

    def likely(self) -> int | None:
        """Return the only page if it is not here."""
        is_needed = self.size and self.count == 1 and not self.is_cleared and 0 not in self.pages
        return 0 if is_needed else None

    def put(self, key: Any, plain: Any) -> Any:
        """Set or delete a key, and return what was pending; None for nothing."""
        old = self.pending.get(key)
        was_pending = key in self.pending
        if was_pending:
            self.living -= old is not DELETED
        elif not self.is_cleared and self.size:
            self.unresolved[key] = None
        self.pending[key] = plain
        self.living += plain is not DELETED
        return (old,) if was_pending else None

    def undo(self, key: Any, old: tuple[Any] | None) -> None:
        """Take back a change."""
        self.living -= self.pending[key] is not DELETED
        if old is not None:
            self.pending[key] = old[0]
            self.living += old[0] is not DELETED
            return
        del self.pending[key]
        if key in self.unresolved:
            del self.unresolved[key]
        else:
            self.replaced -= self._is_stored.pop(key, False)

    def resolve(self, key: Any, *, is_stored: bool) -> None:
        """Note whether a pending key is stored too."""
        del self.unresolved[key]
        self._is_stored[key] = is_stored
        self.replaced += is_stored

    def clear(self) -> None:
        """Remove all entries."""
        self.is_cleared = True
        self._reset()

    def changes(self) -> tuple[Any, ...]:
        """Return what `restore` takes: the changes until now."""
        known = self.pending, self.living, self.replaced, self.unresolved, self._is_stored
        return (self.is_cleared, *known)

    def restore(self, changes: tuple[Any, ...]) -> None:
        """Take back `clear`."""
        self.is_cleared, self.pending, self.living, self.replaced, *known = changes
        self.unresolved, self._is_stored = known

    def stored(self, now: int | None) -> Iterator[tuple[Any, Any]]:
        """Yield the stored entries that have not expired; all pages must be here."""
        for number in range(self.count):
            page = self.pages[number]
            if page is None:
                continue
            values, expires = page
            if now is None or expires is None:
                yield from values.items()
            else:
                yield from ((key, value) for key, value in values.items() if expires[key] > now)

    def apply(self, number_of: Number, now: int, ttl: int | None) -> None:
        """Apply the changes to the pages, and drop what has expired in those that change."""
        if self.is_cleared or not self.size:
            # Pages of the stored map are overwritten or removed.
            self._dirty = set(range(self.count)) if self.size else set()
            self.pages = {}
            self.size, self.count, self.oldest = 0, 1, None
        touched = {number_of(key, self.count) for key in self.pending}
        if self.is_purged:
            touched |= self.pages.keys()
        for number in touched:
            self._open(number, now if ttl is not None else None)
        for key, plain in self.pending.items():
            values, expires = self.pages[number_of(key, self.count)]
            self.size -= key in values
            # Behind the others, so that the order of a page follows the order of writes.
            values.pop(key, None)
            if expires is not None:
                expires.pop(key, None)
            if plain is not DELETED:
                values[key] = plain
                self.size += 1
                if expires is not None and ttl is not None:
                    expires[key] = now + ttl
        self._dirty |= touched
        self._choose()

    def _open(self, number: int, now: int | None) -> None:
        """Have an own copy of a page, without what has expired."""
        values, expires = self.pages.get(number) or ({}, None)
        if now is None:
            self.pages[number] = dict(values), None
            return
        times = {key: time for key, time in (expires or {}).items() if time > now}
        self.pages[number] = {key: values[key] for key in times}, times
        self.size -= len(values) - len(times)

    def _choose(self) -> None:
        """Choose the number of pages."""
        self._target = self.count
        if self.size > _FULL * self.count:
            self._target = -(-self.size // _FULL)
        elif self.size < _SPARSE * self.count:
            self._target = max(1, -(-self.size * 2 // _FULL))

    def moved(self) -> list[int]:
        """Return the pages that a change of their number needs, and that are not here."""
        low, high = sorted((self.count, self._target))
        numbers = {_source(number) for number in range(low, high)}
        numbers.update(range(self._target, self.count))
        return sorted(n for n in numbers if n < self.count and n not in self.pages)

    def resize(self, number_of: Number) -> None:
        """Split or merge pages until there are as many as chosen."""
        while self.count < self._target:
            self._move(_source(self.count), number_of, self.count + 1)
            self.count += 1
        while self.count > self._target:
            self.count -= 1
            self._move(self.count, number_of, self.count)

    def _move(self, number: int, number_of: Number, count: int) -> None:
        """Put the entries of a page where they belong among so many pages."""
        page = self.pages.get(number)
        self._dirty.add(number)
        if page is None:
            return
        values, expires = page
        self.pages[number] = None
        for key, value in values.items():
            place = number_of(key, count)
            if place not in self._dirty or self.pages.get(place) is None:
                old = self.pages.get(place)
                self.pages[place] = (
                    ({}, None if expires is None else {})
                    if old is None
                    else (dict(old[0]), None if old[1] is None else dict(old[1]))
                )
                self._dirty.add(place)
            self.pages[place][0][key] = value
            if expires is not None:
                self.pages[place][1][key] = expires[key]

    def write(self, at: int, changes: Changes, ttl: int | None) -> tuple[Any, ...] | None:
        """Note the pages that have changed, and return what the record says."""
        if not self.size:
            # Pages that hold nothing but what has expired are gone too.
            self._dirty |= self.pages.keys()
        for number in sorted(self._dirty):
            page = self.pages.get(number)
            is_there = bool(page and page[0]) and number < self.count
            changes.add(at, number, page if is_there else None)
        if not self.size:
            return None
        if ttl is None:
            return self.size, self.count, None
        times = [min(page[1].values()) for page in self.pages.values() if page and page[0]]
        if self.oldest is not None and not self.is_purged:
            times.append(self.oldest)
        return self.size, self.count, min(times, default=None)


def _source(number: int) -> int:
    """Return the page whose entries a new page takes over in part."""
    return int(number - (1 << number.bit_length() - 1))
