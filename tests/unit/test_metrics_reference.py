"""The page of metrics lists what /metrics gives, and every metric follows Prometheus' rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.server.metrics.exposition import SERVER_METRICS
from headgate.server.metrics.metric import PREFIX, JobMetric, Kind
from headgate.server.metrics.table import JOB_METRICS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
# Base units, and counts without one.
_UNITS = ("_seconds", "_bytes", "_ratio")
_SCALED = re.compile(r"_(ms|millis|minutes|hours|kb|mb|gb|kib|mib|percent)(_|$)")


def _row(name: str, kind: str, labels: tuple[str, ...], meaning: str) -> str:
    cells = (f"`{name}`", kind, ", ".join(labels), meaning)
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def rows() -> list[str]:
    """Return the rows that the page must have."""
    return [
        *(
            _row(metric.full_name, metric.kind, ("job", *metric.labels), metric.help)
            for metric in JOB_METRICS
        ),
        *(_row(name, "gauge", labels, meaning) for name, labels, meaning in SERVER_METRICS),
    ]


def test_the_page_has_a_row_for_each_metric_and_no_other() -> None:
    found = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{PREFIX}")]
    assert found == rows()


@pytest.mark.parametrize("metric", JOB_METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_a_name_as_prometheus_wants_it(metric: JobMetric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", metric.name)
    assert not _SCALED.search(metric.name)
    # The suffixes belong to types.
    assert not metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
    if metric.kind is Kind.HISTOGRAM:
        assert metric.name.endswith(_UNITS)
    # Labels of the server that scrapes.
    assert not {"job", "instance", "le", "quantile"} & set(metric.labels)


def test_no_name_is_given_twice() -> None:
    names = [metric.full_name for metric in JOB_METRICS] + [name for name, *_ in SERVER_METRICS]
    assert sorted(set(names)) == sorted(names)
