"""Pages of lists and maps: fetched in the middle of a call, and kept until its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from headgate.functions.processes.wire import Fetch, pack_ints, pack_longs

# A message for one page costs as much as reading some; after two of them more are read at once.
_AHEAD_AFTER = 2
_AHEAD = 256
_MOST = 1024

Page = TypeVar("Page")
FetchPages = Callable[[Fetch], pa.RecordBatch]


class Cell(Protocol):
    """The list or map of a key in a call."""

    pages: dict[int, Any]

    def likely(self) -> int | None:
        """Return a page that is not here and is likely to be needed, or None."""


class Pages(Generic[Page]):
    """The pages of one list or map of a process.

    Args:
        read: Turns a batch into pages; None where there is no page.
    """

    def __init__(self, var: int, read: Callable[[pa.RecordBatch], list[Page | None]]) -> None:
        self.var = var
        self._read = read
        self._fetch: FetchPages | None = None
        self._misses = 0

    def begin(self, fetch: FetchPages) -> None:
        """Prepare for a call."""
        self._fetch = fetch
        self._misses = 0

    def load(
        self,
        at: int,
        cell: Cell,
        numbers: Iterable[int],
        cell_of: Callable[[int], Cell | None],
        count: int,
    ) -> None:
        """Have some pages of a key in its cell, and likely ones of the keys behind it.

        Args:
            count: The number of keys in the call.
        """
        missing = [(at, number) for number in numbers if number not in cell.pages]
        if not missing:
            return
        self._misses += 1
        if self._misses > _AHEAD_AFTER:
            for place in range(at + 1, min(count, at + _AHEAD)):
                other = cell_of(place)
                number = None if other is None else other.likely()
                if number is not None:
                    missing.append((place, number))
        self.fetch(missing, cell_of)

    def fetch(
        self, missing: Sequence[tuple[int, int]], cell_of: Callable[[int], Cell | None]
    ) -> None:
        """Read pages, each given by the place of its key and its number."""
        for start in range(0, len(missing), _MOST):
            part = missing[start : start + _MOST]
            assert self._fetch is not None
            batch = self._fetch(Fetch(self.var, [at for at, _ in part], [n for _, n in part]))
            for (at, number), page in zip(part, self._read(batch), strict=True):
                cell = cell_of(at)
                assert cell is not None
                cell.pages[number] = page


class Changes:
    """The pages that a call changes, of one list or map."""

    def __init__(self) -> None:
        self.keys: list[int] = []
        self.numbers: list[int] = []
        self.pages: list[Any] = []

    def add(self, at: int, number: int, page: Any) -> None:
        """Note a page; None removes it."""
        self.keys.append(at)
        self.numbers.append(number)
        self.pages.append(page)

    def sections(self, batch: bytes) -> list[bytes]:
        """Return the sections of a reply, with the pages as a batch."""
        removed = bytes(page is None for page in self.pages)
        return [pack_ints(self.keys), pack_longs(self.numbers) + removed, batch]
