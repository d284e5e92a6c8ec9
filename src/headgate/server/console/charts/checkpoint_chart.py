"""Sizes and durations of checkpoints over time, as a chart; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.jobs.views.checkpoint_history import CheckpointEvent
from headgate.server.console.charts.job_charts import BYTES, MS
from headgate.server.console.charts.timeline import in_ms
from headgate.server.console.parts.theme import BAD, MUTED, SERIES

# More points than these are not told apart.
POINTS = 300

_SIZES, _TIMES = 0, 1


def chart_options(entries: Sequence[CheckpointEvent]) -> dict[str, Any]:
    """Return the chart of checkpoints and savepoints: sizes above, durations below.

    Args:
        entries: Newest first; of more than POINTS the newest are shown.
    """
    shown = list(reversed(entries[:POINTS]))
    done = [each for each in shown if each.status == "COMPLETED"]
    failed = [each for each in shown if each.status != "COMPLETED"]
    full = [[in_ms(each.at), each.full_bytes] for each in done]
    new = [[in_ms(each.at), each.new_bytes] for each in done if each.new_bytes is not None]
    took = [
        [in_ms(each.at), round(each.took.total_seconds() * 1000)]
        for each in done
        if each.took is not None
    ]
    return {
        "useUTC": True,
        "legend": {
            "top": 0,
            "left": 0,
            "itemWidth": 14,
            "itemHeight": 8,
            "icon": "rect",
            "textStyle": {"color": MUTED},
        },
        "axisPointer": {"link": [{"xAxisIndex": "all"}]},
        "grid": [
            {"left": 64, "right": 12, "top": 30, "height": "42%"},
            {"left": 64, "right": 12, "top": "68%", "bottom": 24},
        ],
        "xAxis": [_time_axis(_SIZES, shown=False), _time_axis(_TIMES, shown=True)],
        "yAxis": [_value_axis(_SIZES, BYTES.script), _value_axis(_TIMES, MS.script)],
        "series": [
            _line("size", full, _SIZES, BYTES.script, SERIES[0]),
            _bars("new bytes", new, _SIZES, BYTES.script, SERIES[1]),
            _bars("took", took, _TIMES, MS.script, SERIES[2]),
            {
                "name": "failed",
                "type": "scatter",
                "symbol": "triangle",
                "symbolSize": 9,
                "color": BAD,
                "xAxisIndex": _TIMES,
                "yAxisIndex": _TIMES,
                "data": [[in_ms(each.at), 0] for each in failed],
            },
        ],
    }


def _time_axis(grid: int, *, shown: bool) -> dict[str, Any]:
    return {
        "type": "time",
        "gridIndex": grid,
        "axisLabel": {"show": shown, "hideOverlap": True},
        "axisTick": {"show": shown},
    }


def _value_axis(grid: int, script: str) -> dict[str, Any]:
    return {
        "type": "value",
        "gridIndex": grid,
        "min": 0,
        "splitNumber": 3,
        "axisLabel": {":formatter": script},
    }


def _line(name: str, points: list[Any], grid: int, script: str, colour: str) -> dict[str, Any]:
    return {
        **_series(name, points, grid, script, colour),
        "type": "line",
        "symbolSize": 4,
        "lineStyle": {"width": 1.5},
    }


def _bars(name: str, points: list[Any], grid: int, script: str, colour: str) -> dict[str, Any]:
    return {**_series(name, points, grid, script, colour), "type": "bar", "barMaxWidth": 6}


def _series(name: str, points: list[Any], grid: int, script: str, colour: str) -> dict[str, Any]:
    return {
        "name": name,
        "color": colour,
        "xAxisIndex": grid,
        "yAxisIndex": grid,
        "data": points,
        "tooltip": {":valueFormatter": script},
    }
