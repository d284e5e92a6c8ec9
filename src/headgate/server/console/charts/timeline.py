"""The places of moments on the timeline: pure arithmetic, no page.

Time runs from left to right. A gap that is much longer than the others is drawn shorter, and marked
as cut; otherwise it would press all the rest into a corner. Within a gap time is even.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

# A gap longer than so many usual ones is drawn shorter.
_LONG = 4.0
# What is left free at the left end, as a share of the track.
_MARGIN = 0.03
_SHORTEST = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Cut:
    """A gap that is drawn shorter than it was."""

    start: float
    end: float
    lasted: timedelta


@dataclass(frozen=True, slots=True)
class Track:
    """Moments and their places: 0 is the left end, 1 the right.

    Attributes:
        stops: Place and moment, both rising; between two of them time is even.
        cuts: Gaps that are drawn shorter.
    """

    stops: tuple[tuple[float, datetime], ...]
    cuts: tuple[Cut, ...] = ()

    @property
    def ends(self) -> datetime:
        """The moment at the right end."""
        return self.stops[-1][1]

    def place(self, moment: datetime) -> float:
        """Return where a moment stands; one outside stands at the nearer end."""
        moments = [at for _, at in self.stops]
        after = min(max(bisect_right(moments, moment), 1), len(moments) - 1)
        (left, before), (right, then) = self.stops[after - 1], self.stops[after]
        share = (moment - before) / (then - before)
        return left + (right - left) * min(max(share, 0.0), 1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the track for the browser: milliseconds since 1970, and what gaps lasted."""
        return {
            "stops": [[round(place, 5), in_ms(at)] for place, at in self.stops],
            "cuts": [
                {
                    "start": round(cut.start, 5),
                    "end": round(cut.end, 5),
                    "lasted": tell_roughly(cut.lasted),
                }
                for cut in self.cuts
            ],
        }


def lay_out(moments: Sequence[datetime], now: datetime) -> Track:
    """Return the track on which these moments stand; it ends now.

    Args:
        moments: In any order; those after now make the track end later.
    """
    known = sorted({*moments, now})
    # The left end is a little before the first, so that its mark can be seen and reached.
    if len(known) == 1:
        known = [now - _SHORTEST, now]
    gaps = [(then - before) / timedelta(seconds=1) for before, then in pairwise(known)]
    longest = _LONG * max(statistics.median(gaps), 0.001)
    widths = [_width(gap, longest) for gap in gaps]
    whole = sum(widths) / (1 - _MARGIN)
    before_first = timedelta(seconds=max(statistics.median(gaps), 0.001))
    stops = [(0.0, known[0] - before_first), (_MARGIN, known[0])]
    cuts = []
    for gap, width, then in zip(gaps, widths, known[1:], strict=True):
        left = stops[-1][0]
        stops.append((left + width / whole, then))
        if gap > longest:
            cuts.append(Cut(left, stops[-1][0], timedelta(seconds=gap)))
    stops[-1] = (1.0, known[-1])
    return Track(tuple(stops), tuple(cuts))


def in_ms(moment: datetime) -> int:
    """Return a moment as milliseconds since 1970, rounded up.

    Rounded up, since a checkpoint is taken by moments that are not before it.
    """
    return math.ceil(moment.timestamp() * 1000)


def tell_roughly(lasted: timedelta) -> str:
    """Return a duration in the largest unit that fits: `3 days`, `2 hours`, `40 s`."""
    seconds = round(lasted.total_seconds())
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "min")):
        # A little early, so that it is 1 day and not 24 hours.
        if seconds >= 0.97 * size:
            count = round(seconds / size)
            many = "s" if count != 1 and name != "min" else ""
            return f"{count} {name}{many}"
    return f"{seconds} s"


def _width(gap: float, longest: float) -> float:
    return gap if gap <= longest else longest * (1 + math.log10(gap / longest) / 4)
