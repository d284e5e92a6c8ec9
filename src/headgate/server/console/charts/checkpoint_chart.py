"""Sizes and durations of checkpoints over time, as a chart; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.jobs.views.checkpoint_history import CheckpointEvent
from headgate.server.console.charts.job_charts import BYTES, MS, Unit
from headgate.server.console.charts.timeline import in_ms
from headgate.server.console.parts.theme import BAD, MUTED, SERIES

# More points cannot be told apart.
POINTS = 300

_SIZES, _TIMES = 0, 1


def chart_options(entries: Sequence[CheckpointEvent]) -> dict[str, Any]:
    """Return the chart of checkpoints and savepoints: sizes above, durations below.

    Args:
        entries: Newest first; of more than POINTS the newest are shown.
    """
    shown = list(reversed(entries[:POINTS]))
    done = [entry for entry in shown if entry.status == "COMPLETED"]
    failed = [[in_ms(entry.at), 0] for entry in shown if entry.status != "COMPLETED"]
    full = [[in_ms(entry.at), entry.full_bytes] for entry in done]
    new = [[in_ms(entry.at), entry.new_bytes] for entry in done if entry.new_bytes is not None]
    took = [
        [in_ms(entry.at), round(entry.took.total_seconds() * 1000)]
        for entry in done
        if entry.took is not None
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
        "yAxis": [
            {
                "type": "value",
                "gridIndex": grid,
                "min": 0,
                "splitNumber": 3,
                "axisLabel": {":formatter": unit.script},
            }
            for grid, unit in ((_SIZES, BYTES), (_TIMES, MS))
        ],
        "series": [
            _series("size", full, _SIZES, BYTES, SERIES[0], type="line", symbolSize=4),
            _series("new bytes", new, _SIZES, BYTES, SERIES[1], type="bar", barMaxWidth=6),
            _series("took", took, _TIMES, MS, SERIES[2], type="bar", barMaxWidth=6),
            _series(
                "failed", failed, _TIMES, MS, BAD, type="scatter", symbol="triangle", symbolSize=9
            ),
        ],
    }


def _time_axis(grid: int, *, shown: bool) -> dict[str, Any]:
    return {
        "type": "time",
        "gridIndex": grid,
        "axisLabel": {"show": shown, "hideOverlap": True},
        "axisTick": {"show": shown},
    }


def _series(
    name: str, points: list[Any], grid: int, unit: Unit, colour: str, **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "color": colour,
        "xAxisIndex": grid,
        "yAxisIndex": grid,
        "data": points,
        "tooltip": {":valueFormatter": unit.script},
        "lineStyle": {"width": 1.5},
        **more,
    }
