"""How often each record of a partition was written, by its offset. Pure.

A module of its own, since numpy takes a while to import and only an audit needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Counts end here: a record that is there so often is doubled beyond counting.
_MOST = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class Count:
    """What was found of one partition.

    Attributes:
        records: In the input.
        written: Of those, how many are in some row.
        doubled: Rows too many.
        unknown: Offsets in the range that rows name, and at which the input has no record.
        ahead: Rows of records behind the range.
        before: Rows of records before it.
    """

    records: int
    written: int
    doubled: int
    unknown: int
    ahead: int
    before: int


class PartitionCounts:
    """Counts rows by the offset of their record.

    Args:
        begin: The first offset of the range.
        end: The offset behind its last.
    """

    def __init__(self, begin: int, end: int) -> None:
        self._begin = begin
        size = max(0, end - begin)
        self._is_there = np.zeros(size, np.bool_)
        self._seen = np.zeros(size, np.bool_)
        self._groups: dict[str, npt.NDArray[np.uint16]] = {}
        self._ahead = 0
        self._before = 0

    def expect(self, offsets: Iterable[int]) -> None:
        """Take records of the input, each of an offset in the range."""
        self._is_there[_array(offsets) - self._begin] = True

    def take(self, offsets: Iterable[int], group: str | None) -> None:
        """Take rows of an output.

        Args:
            offsets: Those of the records they came from.
            group: The rows among which a record may be once; None where it may be often.
        """
        places = _array(offsets) - self._begin
        self._before += int(np.count_nonzero(places < 0))
        self._ahead += int(np.count_nonzero(places >= self._seen.size))
        inside = places[(places >= 0) & (places < self._seen.size)]
        self._seen[inside] = True
        if group is not None:
            counts = self._groups.setdefault(group, np.zeros(self._seen.size, np.uint16))
            found, times = np.unique(inside, return_counts=True)
            counts[found] = np.minimum(counts[found].astype(np.int64) + times, _MOST)

    def count(self) -> Count:
        """Return what was found so far."""
        return Count(
            records=int(np.count_nonzero(self._is_there)),
            written=int(np.count_nonzero(self._is_there & self._seen)),
            doubled=sum(int(extra.sum(dtype=np.int64)) for extra in self._extras()),
            unknown=int(np.count_nonzero(self._seen & ~self._is_there)),
            ahead=self._ahead,
            before=self._before,
        )

    def find_lost(self, limit: int) -> list[int]:
        """Return the first offsets of records that are in no row."""
        return self._first(self._is_there & ~self._seen, limit)

    def find_doubled(self, limit: int) -> list[int]:
        """Return the first offsets of records that are in too many rows."""
        found = {place for extra in self._extras() for place in self._first(extra > 0, limit)}
        return sorted(found)[:limit]

    def find_unknown(self, limit: int) -> list[int]:
        """Return the first offsets that rows name and at which the input has no record."""
        return self._first(self._seen & ~self._is_there, limit)

    def _extras(self) -> Iterator[npt.NDArray[np.uint16]]:
        for counts in self._groups.values():
            yield np.where((counts > 1) & self._is_there, counts - 1, 0).astype(np.uint16)

    def _first(self, mask: npt.NDArray[np.bool_], limit: int) -> list[int]:
        return [int(place) + self._begin for place in np.flatnonzero(mask)[:limit]]


def _array(offsets: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(offsets, np.int64)
