"""The metrics of all jobs as Prometheus' text, read from the jobs' files when it asks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from headgate.jobs.host.doctor import SPARK_VERSION
from headgate.jobs.metrics.histogram import Histogram
from headgate.jobs.views.job import JobView
from headgate.server.context import ServerContext
from headgate.server.metrics.metric import PREFIX, JobFigures, JobMetric, Kind
from headgate.server.metrics.table import JOB_METRICS

OPERATIONS = f"{PREFIX}operations_running"
BUILD = f"{PREFIX}build_info"
# The metrics that belong to no job: name, labels, meaning.
SERVER_METRICS = (
    (OPERATIONS, (), "Operations of the server under way."),
    (BUILD, ("spark", "version"), "1; the releases of Headgate and Spark are its labels."),
)


def read_metrics(server: ServerContext) -> tuple[bytes, str]:
    """Return the metrics of all jobs as Prometheus' text, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Jobs(server))
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


class _Jobs:
    """A collector for one scrape: a few small files of each job, each read once."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server

    def collect(self) -> Iterable[Metric]:
        now = datetime.now(UTC)
        jobs = [self._figures(view, now) for view in self._server.shown_jobs()]
        yield from (_family(metric, jobs) for metric in JOB_METRICS)
        yield from self._of_the_server()

    def _figures(self, view: JobView, now: datetime) -> JobFigures:
        home = self._server.home
        return JobFigures(
            view=view,
            counters=home.counters(view),
            checkpoint=home.newest_checkpoint(view),
            vitals=home.vitals(view),
            executors=home.executors(view),
            now=now,
        )

    def _of_the_server(self) -> Iterator[Metric]:
        (operations, _, running_help), (build, labels, build_help) = SERVER_METRICS
        running = sum(not operation.is_over for operation in self._server.operations.list())
        yield GaugeMetricFamily(operations, running_help, value=running)
        info = GaugeMetricFamily(build, build_help, labels=labels)
        info.add_metric((SPARK_VERSION, sys.modules["headgate"].__version__), 1.0)
        yield info


def _family(metric: JobMetric, jobs: Sequence[JobFigures]) -> Metric:
    name, labels = f"{PREFIX}{metric.name}", ("job", *metric.labels)
    if metric.kind is Kind.HISTOGRAM:
        histograms = HistogramMetricFamily(name, metric.help, labels=labels)
        for job in jobs:
            for more, value in metric.read(job):
                if isinstance(value, Histogram):
                    histograms.add_metric((job.view.name, *more), _buckets(value), value.sum)
        return histograms
    family = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    numbers = family(name, metric.help, labels=labels)
    for job in jobs:
        for more, value in metric.read(job):
            if not isinstance(value, Histogram):
                numbers.add_metric((job.view.name, *more), value)
    return numbers


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [*map(str, map(float, histogram.bounds)), "+Inf"]
    return list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
