"""Histograms with fixed bounds, as Prometheus has them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values were at most each bound, and their sum.

    Attributes:
        bounds: The upper bounds, ascending.
        counts: The values above the bound before and up to each bound, then those above the last.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float = 0.0

    @classmethod
    def empty(cls, bounds: Sequence[float]) -> Histogram:
        """Return a histogram without values."""
        return cls(tuple(bounds), (0,) * (len(bounds) + 1))

    @property
    def total(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def with_value(self, value: float) -> Histogram:
        """Return the histogram with one more value."""
        place = bisect_left(self.bounds, value)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return replace(self, counts=counts, sum=self.sum + value)

    def plus(self, more: Histogram) -> Histogram:
        """Return the values of both; those of the other one alone if its bounds are different."""
        if self.bounds != more.bounds:
            # Another release had other bounds, and counts cannot be split.
            return more
        counts = tuple(a + b for a, b in zip(self.counts, more.counts, strict=True))
        return Histogram(self.bounds, counts, self.sum + more.sum)
