"""A line of a few numbers over time, small enough to stand in a row of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from headgate.server.console.parts.formats import format_rate
from headgate.server.console.parts.templates import render

WIDTH = 96
HEIGHT = 22
_EDGE = 1.5


@dataclass(frozen=True, slots=True)
class Trend:
    """Rates over a span of time.

    Attributes:
        begins: The left end of the line; the same distance is the same time on every line.
        at: The moment of each rate, oldest first.
        rates: None if nothing was measured.
    """

    begins: datetime
    ends: datetime
    at: tuple[datetime, ...] = ()
    rates: tuple[float | None, ...] = ()


def sparkline(trend: Trend | None) -> Markup:
    """Return rates as a small line from left to right; its floor is 0, gaps stay gaps."""
    known = [rate for rate in trend.rates if rate is not None] if trend else []
    if trend is None or len(known) < 2:
        return Markup()
    most = max(known)
    label = f"from {format_rate(known[0])} to {format_rate(known[-1])}, at most {format_rate(most)}"
    path = "".join(_pieces(trend, most or 1.0))
    return render("sparkline", path=path, width=WIDTH, height=HEIGHT, label=label)


def _pieces(trend: Trend, most: float) -> Iterator[str]:
    wide, tall = WIDTH - 2 * _EDGE, HEIGHT - 2 * _EDGE
    span = trend.ends - trend.begins
    drawing = False
    for at, rate in zip(trend.at, trend.rates, strict=True):
        if rate is None or at < trend.begins:
            drawing = False
            continue
        x = _EDGE + wide * min(1.0, (at - trend.begins) / span)
        point = f"{x:.1f} {_EDGE + tall * (1 - max(0.0, rate) / most):.1f}"
        # A line to where it begins is a dot, so that a rate between two gaps is seen.
        yield f"L{point}" if drawing else f"M{point}L{point}"
        drawing = True
