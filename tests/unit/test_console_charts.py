"""Sparklines and charts of what a job measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from console_job import NOW

from headgate.jobs.views.samples import Samples
from headgate.server.console.charts import job_charts
from headgate.server.console.charts.job_charts import (
    RANGES,
    THEMES,
    axis_of,
    chart_options,
    last_value,
)
from headgate.server.console.charts.sparkline import WIDTH, Trend, sparkline


def _trend(*rates: float | None, at: Sequence[float] = ()) -> Trend:
    """Return rates at these minutes of a quarter of an hour, by default one minute apart."""
    moments = at or range(len(rates))
    begins, minute = NOW - timedelta(minutes=15), timedelta(minutes=1)
    return Trend(begins, NOW, tuple(begins + place * minute for place in moments), rates)


def _points(shown: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", shown)]


def test_a_sparkline_goes_from_left_to_right_and_has_its_floor_at_zero() -> None:
    shown = sparkline(_trend(0, 10, 5))
    xs, ys = zip(*_points(shown), strict=True)
    assert list(xs) == sorted(xs)
    assert ys[0] > ys[-1] > ys[-2]
    assert "at most 10/s" in shown


def test_a_sparkline_shows_true_time() -> None:
    """A job that has run for two of fifteen minutes does not fill the line."""
    points = _points(sparkline(_trend(1, 2, 3, at=(13, 14, 15))))
    assert points[0][0] > WIDTH * 0.8
    assert points[-1][0] > WIDTH - 3
    uneven = [x for x, _ in _points(sparkline(_trend(1, 2, 3, at=(0, 1, 15))))]
    assert uneven[-1] - uneven[-2] == pytest.approx(14 * (uneven[-2] - uneven[0]), rel=0.05)


def test_a_sparkline_has_gaps_where_nothing_is_known() -> None:
    assert sparkline(_trend(1, None, 2)).count("M") == 2
    # What stands between two gaps is a dot.
    assert sparkline(_trend(1, None, 2)).count("L") == 2
    assert sparkline(None) == ""
    assert sparkline(_trend()) == ""
    assert sparkline(_trend(None, 3)) == ""
    assert "NaN" not in sparkline(_trend(0, 0, 0))
    assert sparkline(_trend(7, 1, 1, at=(-1, 0, 1))).count("M") == 1, "older ones are left out"


def _samples(count: int = 3, **series: Any) -> Samples:
    nothing = (None,) * count
    names = (
        "in_per_s", "out_per_s", "lag_records", "lag_bytes", "lag_s", "batch_ms", "latency_p50_ms",
        "latency_p95_ms", "latency_p99_ms", "state_rows", "state_bytes", "watermark",
    )  # fmt: skip
    known: dict[str, Any] = dict.fromkeys(names, nothing) | series
    return Samples(
        job="orders",
        every=timedelta(seconds=1),
        at=tuple(NOW + timedelta(seconds=n) for n in range(count)),
        inputs={},
        outputs={},
        phases={"processing": nothing, "committing": nothing},
        **known,
    )


def test_all_charts_share_one_time_axis() -> None:
    later = NOW + timedelta(minutes=1)
    begin, end = axis_of(_samples(), timedelta(minutes=15), later)
    assert end == round(later.timestamp() * 1000)
    assert end - begin == 15 * 60 * 1000
    assert axis_of(_samples(), None, later) == (
        round(NOW.timestamp() * 1000),
        round(NOW.timestamp() * 1000) + 2_000,
    )
    assert axis_of(_samples(0), None, later)[0] == round(later.timestamp() * 1000)


def test_lag_shows_what_is_known_on_two_axes_at_most() -> None:
    known = (1.0, 2.0, 3.0)
    of_bytes = job_charts.pick_lag(_samples(lag_bytes=known))
    assert [each.name for each in of_bytes] == ["bytes"]
    of_all = job_charts.pick_lag(_samples(lag_records=known, lag_bytes=known, lag_s=known))
    assert [each.name for each in of_all] == ["records", "age"]
    assert of_all[1].values == (1_000.0, 2_000.0, 3_000.0)
    assert [each.name for each in job_charts.pick_lag(_samples())] == ["records"]


def test_every_theme_draws_what_it_picks() -> None:
    for theme in THEMES:
        series = theme.pick(_samples())
        options = chart_options(theme, series)
        assert len(options["series"]) == len(series) > 0
        assert all(each["yAxisIndex"] < len(options["yAxis"]) for each in options["series"])
        assert all(("stack" in each) is theme.stacked for each in options["series"])


def test_the_ranges_end_with_all_there_is() -> None:
    spans = [span for _, _, span in RANGES]
    assert spans[-1] is None
    assert spans[:-1] == sorted(each for each in spans if each is not None)


def test_the_newest_known_value_stands_in_the_caption() -> None:
    assert last_value((1, 2, None)) == 2
    assert last_value((None,)) is None
