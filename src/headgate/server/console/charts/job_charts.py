"""The charts of a job: what it did over time, on one time axis."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup
from nicegui import ui

from headgate.jobs.views.samples import Samples
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import (
    format_bytes,
    format_duration,
    format_ms,
    format_rate,
    format_short,
)
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import render
from headgate.server.console.parts.theme import SERIES

POINTS = 300
RANGES = (
    ("15m", "15 min", timedelta(minutes=15)),
    ("1h", "1 h", timedelta(hours=1)),
    ("6h", "6 h", timedelta(hours=6)),
    ("all", "All", None),
)

Values = Sequence[float | None]
Point = tuple[int, float | None]

# How a browser writes the numbers of an axis and of the box beside the mouse.
_JS_SHORT = (
    "(v) => v === null || v === undefined ? '–' : Math.abs(v) >= 1e9 ? +(v / 1e9).toFixed(2) + 'G' "
    ": Math.abs(v) >= 1e6 ? +(v / 1e6).toFixed(2) + 'M' : Math.abs(v) >= 1e3 "
    "? +(v / 1e3).toFixed(1) + 'k' : +v.toFixed(1)"
)
_JS_BYTES = (
    "(v) => { if (v === null || v === undefined) return '–'; let n = 0; "
    "while (Math.abs(v) >= 1024 && n < 4) { v /= 1024; n++; } "
    "return +v.toFixed(1) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB'][n]; }"
)
_JS_MS = (
    "(v) => v === null || v === undefined ? '–' : v < 1000 ? Math.round(v) + ' ms' "
    ": v < 60000 ? +(v / 1000).toFixed(1) + ' s' : +(v / 60000).toFixed(1) + ' min'"
)


_TIMES = {"hideOverlap": True, "formatter": {"day": "{MM}-{dd}", "hour": "{HH}:{mm}"}}


@dataclass(frozen=True, slots=True)
class Unit:
    """How numbers of one kind are written: here, and in the browser."""

    write: Callable[[float | None], str]
    script: str


RATE = Unit(format_rate, f"(v) => ({_JS_SHORT})(v) + (v === null || v === undefined ? '' : '/s')")
COUNT = Unit(format_short, _JS_SHORT)
BYTES = Unit(format_bytes, _JS_BYTES)
MS = Unit(format_ms, _JS_MS)


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart."""

    name: str
    values: Values
    unit: Unit


@dataclass(frozen=True, slots=True)
class Theme:
    """One chart.

    Attributes:
        stacked: Whether lines stand on one another, as parts of a whole.
    """

    title: str
    says: str
    pick: Callable[[Samples], list[Series]]
    stacked: bool = False


def pick_lag(samples: Samples) -> list[Series]:
    """Return what was left to read: records or bytes, as far as known, and how old it was."""
    series = []
    if _any(samples.lag_records) or not _any(samples.lag_bytes):
        series.append(Series("records", samples.lag_records, COUNT))
    if _any(samples.lag_bytes):
        series.append(Series("bytes", samples.lag_bytes, BYTES))
    if _any(samples.lag_s):
        ms = tuple(None if seconds is None else seconds * 1000 for seconds in samples.lag_s)
        series.append(Series("age", ms, MS))
    # A chart has two axes.
    return series[:1] + series[-1:] if len(series) > 2 else series


THEMES = (
    Theme(
        "Rate",
        "records read and rows written a second",
        lambda of: [Series("in", of.in_per_s, RATE), Series("out", of.out_per_s, RATE)],
    ),
    Theme(
        "Batch time",
        "average, by what it was spent on",
        lambda of: [Series(name, values, MS) for name, values in of.phases.items()],
        stacked=True,
    ),
    Theme("Lag", "what was left to read", pick_lag),
    Theme(
        "Latency",
        "from a record's timestamp to its commit",
        lambda of: [
            Series("p50", of.latency_p50_ms, MS),
            Series("p95", of.latency_p95_ms, MS),
            Series("p99", of.latency_p99_ms, MS),
        ],
    ),
    Theme(
        "State",
        "of all operators",
        lambda of: [Series("bytes", of.state_bytes, BYTES), Series("rows", of.state_rows, COUNT)],
    ),
)


class Charts:
    """The charts of one page; they are made once and changed in place."""

    def __init__(self, on_range: Callable[[], Awaitable[None]]) -> None:
        self._range = RANGES[0][0]
        self._on_range = on_range
        self._newest: tuple[object, ...] = ()
        with ui.element("div").classes("hg-toolbar"):
            self._choice = Live(self._ranges()).on_act(self._choose)
            self._choice.classes("hg-themes hg-ranges").props('role="group" aria-label="Range"')
            self._note = Live().classes("hg-quiet")
        with ui.element("div").classes("hg-charts"):
            self._charts = [_Chart(theme) for theme in THEMES]

    @property
    def since(self) -> timedelta | None:
        """How far back to look; None for all there is."""
        return next(span for name, _, span in RANGES if name == self._range)

    def show(self, samples: Samples, now: datetime) -> None:
        """Show what a job did up to some moment; the same again costs nothing."""
        newest = (self._range, samples.every, samples.at[-1:], len(samples.at))
        if newest == self._newest:
            return
        self._newest = newest
        begin, end = axis_of(samples, self.since, now)
        for chart in self._charts:
            chart.show(samples, begin, end)
        self._note.show(
            f"a point every {format_duration(samples.every)}, times in UTC"
            if samples.at
            else "nothing was measured in this time"
        )

    async def _choose(self, _action: str, name: str) -> None:
        self._range = name
        self._choice.show(self._ranges())
        await self._on_range()

    def _ranges(self) -> Markup:
        ranges = [(name, label) for name, label, _ in RANGES]
        return render("chart_ranges", ranges=ranges, chosen=self._range)


class _Chart:
    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        with ui.element("figure").classes("hg-figure"):
            self._caption = Live(_caption(theme, []), tag="figcaption")
            self._chart = widgets.chart(chart_options(theme, []), height="9.5rem")
            self._chart.props('aria-hidden="true"')

    def show(self, samples: Samples, begin: int, end: int) -> None:
        series = self._theme.pick(samples)
        options = chart_options(self._theme, series)
        options["xAxis"] |= {"min": begin, "max": end}
        times = [round(moment.timestamp() * 1000) for moment in samples.at]
        for drawn, line in zip(options["series"], series, strict=True):
            # Tuples: what is a list would be watched for changes, point by point.
            drawn["data"] = tuple(zip(times, line.values, strict=True))
        self._chart.props["options"] = widgets.themed(options)
        self._caption.show(_caption(self._theme, series))


def axis_of(samples: Samples, since: timedelta | None, now: datetime) -> tuple[int, int]:
    """Return where the time axis of all charts begins and ends, in epoch milliseconds."""
    if since is not None:
        end = max([now, *samples.at[-1:]])
        begin = end - since
    else:
        begin, end = (samples.at[0], samples.at[-1]) if samples.at else (now, now)
    return round(begin.timestamp() * 1000), round(end.timestamp() * 1000)


def chart_options(theme: Theme, series: Sequence[Series]) -> dict[str, Any]:
    """Return a chart without its data."""
    units = list(dict.fromkeys(line.unit for line in series))[:2] or [COUNT]
    return {
        "useUTC": True,
        "xAxis": {"type": "time", "splitNumber": 4, "axisLabel": _TIMES},
        "yAxis": [
            {
                "type": "value",
                "min": 0,
                "minInterval": 1,
                "splitNumber": 3,
                "position": "right" if number else "left",
                "splitLine": {"show": number == 0, "lineStyle": {"color": "var(--hg-line)"}},
                "axisLabel": {":formatter": unit.script},
            }
            for number, unit in enumerate(units)
        ],
        "grid": {"left": 4, "right": 8, "top": 10, "bottom": 4, "containLabel": True},
        "series": [_line(theme, number, line, units) for number, line in enumerate(series)],
    }


def last_value(values: Values) -> float | None:
    """Return the newest value that is known."""
    return next((value for value in reversed(values) if value is not None), None)


def _line(theme: Theme, number: int, series: Series, units: Sequence[Unit]) -> dict[str, Any]:
    colour = SERIES[number % len(SERIES)]
    line: dict[str, Any] = {
        "name": series.name,
        "type": "line",
        "showSymbol": False,
        "sampling": "lttb",
        "yAxisIndex": units.index(series.unit) if series.unit in units else 0,
        "lineStyle": {"width": 1.5, "color": colour},
        "itemStyle": {"color": colour},
        "emphasis": {"disabled": True},
        "tooltip": {":valueFormatter": series.unit.script},
        "data": (),
    }
    if theme.stacked:
        line |= {"stack": "all", "areaStyle": {"color": colour, "opacity": 0.35}}
        line["lineStyle"]["width"] = 1
    return line


def _caption(theme: Theme, series: Sequence[Series]) -> Markup:
    keys = [
        (line.name, SERIES[number % len(SERIES)], line.unit.write(last_value(line.values)))
        for number, line in enumerate(series)
    ]
    return render("chart_caption", theme=theme, keys=keys)


def _any(values: Values) -> bool:
    return any(value is not None for value in values)
