"""A line of a few numbers, small enough to stand in a row of a table."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from headgate.server.console.parts.formats import format_rate
from headgate.server.console.parts.templates import render

WIDTH = 96
HEIGHT = 22
_EDGE = 1.5


def sparkline(values: Sequence[float | None]) -> Markup:
    """Return numbers as a small line from left to right; its floor is 0, gaps stay gaps."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return Markup()
    most = max(known)
    label = f"from {format_rate(known[0])} to {format_rate(known[-1])}, at most {format_rate(most)}"
    path = "".join(_pieces(values, most or 1.0))
    return render("sparkline", path=path, width=WIDTH, height=HEIGHT, label=label)


def _pieces(values: Sequence[float | None], most: float) -> list[str]:
    step = (WIDTH - 2 * _EDGE) / (len(values) - 1)
    tall = HEIGHT - 2 * _EDGE
    pieces, pen = [], "M"
    for number, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        x, y = _EDGE + number * step, _EDGE + tall * (1 - max(0.0, value) / most)
        pieces.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    return pieces
