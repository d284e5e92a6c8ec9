"""Random numbers without state: the n-th draw of a column is a pure function of the seed.

Every value depends only on its index. So data does not depend on how it is cut into chunks, a later
round needs nothing of earlier rounds, and no release of a library can change the meaning of a seed.
"""

import enum
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
_Words: TypeAlias = npt.NDArray[np.uint64]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


class Column(enum.IntEnum):
    """The columns of draws. Each has a sequence of its own; the numbers are part of a seed's
    meaning."""

    USER_FIRST_NAME = 1
    USER_LAST_NAME = 2
    USER_DOMAIN = 3
    USER_CREATED = 4
    USER_FATE = 5
    USER_FATE_TIME = 6
    USER_PARENT = 7
    ITEM_CREATED = 8
    ITEM_ADJECTIVE = 9
    ITEM_MODIFIER = 10
    ITEM_CATEGORY = 11
    ITEM_PRODUCT = 12
    ITEM_PRICE = 13
    ITEM_CENTS = 14
    ORDER_USER = 15
    ORDER_ITEM = 16
    ORDER_JITTER = 17
    ORDER_PAID = 18
    ORDER_UNKNOWN = 19
    ORDER_UNKNOWN_ID = 20
    ORDER_BAD = 21
    INVOICE_SHAPE = 22
    UPDATE_USER = 23
    UPDATE_KIND = 24
    UPDATE_VALUE = 25
    UPDATE_DELETE = 26
    VISIT_ID = 27
    VISIT_PAGE = 28
    VISIT_SHIFT = 29
    VISIT_LATE = 30
    VISIT_LATE_BY = 31


@dataclass(frozen=True, slots=True)
class Draws:
    """The draws of one seed."""

    seed: int

    def unit(self, column: Column, index: Ints) -> Floats:
        """Return a number from 0 up to but not including 1 for each index."""
        return (self._words(column, index) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, column: Column, limit: int, index: Ints) -> Ints:
        """Return an integer from 0 up to but not including the limit for each index."""
        return (self._words(column, index) % np.uint64(limit)).astype(np.int64)

    def picks(self, column: Column, share: float, first: int, last: int) -> tuple[Ints, Ints]:
        """Return the picked indices from first up to last, and their ordinals.

        One index in every 1/share is picked, at a random place in that stretch: the share holds
        exactly over any whole number of stretches, however the indices are cut. The ordinals count
        the picks from index 0.
        """
        if share <= 0:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ordinals = np.arange(max(0, int(first * share) - 2), int(last * share) + 2, dtype=np.int64)
        # At this distance from the end of its stretch, no pick collides with the next one.
        offsets = self.unit(column, ordinals) * (1 - share)
        places = ((ordinals + offsets) / share).astype(np.int64)
        inside = (places >= first) & (places < last)
        return places[inside], ordinals[inside]

    def _words(self, column: Column, index: Ints) -> _Words:
        # The finalizer of splitmix64, over a counter with another start for each column.
        start = _mix_one((self.seed & _MASK) ^ _mix_one(column * _GOLDEN & _MASK))
        words = index.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(start)
        words ^= words >> np.uint64(30)
        words *= np.uint64(0xBF58476D1CE4E5B9)
        words ^= words >> np.uint64(27)
        words *= np.uint64(0x94D049BB133111EB)
        words ^= words >> np.uint64(31)
        return words


def _mix_one(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _MASK
    return word ^ (word >> 31)
