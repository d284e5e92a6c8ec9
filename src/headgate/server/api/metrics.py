"""Figures of jobs for Prometheus, read when it asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.views.job import DEAD, JobView
from headgate.server.context import ServerContext

_STATES = (*(each.value for each in JobState), DEAD, "UNREADABLE")

# By the name of a metric: what it is, its unit being in the name; and the field of a job's status
# that has it by source, output or operator.
_COUNTERS = (
    ("headgate_records_in", "Records read since the job was started.", "source", "inputs"),
    ("headgate_records_out", "Rows written since the job was started.", "output", "outputs"),
)
_GAUGES = (
    ("headgate_lag_records", "Records left to read.", "source", "lag_records"),
    ("headgate_lag_bytes", "Bytes left to read.", "source", "lag_bytes"),
    ("headgate_lag_seconds", "Age of the oldest unread record.", "source", "lag_s"),
    ("headgate_state_rows", "Rows that an operator holds.", "operator", "state_rows"),
    ("headgate_state_bytes", "Bytes of an operator's state.", "operator", "state_bytes"),
)


def read_metrics(server: ServerContext) -> tuple[bytes, str]:
    """Return the figures of all jobs as Prometheus' text, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Jobs(server))
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


class _Jobs:
    """A collector for one scrape."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server

    def collect(self) -> Iterable[Metric]:
        only = self._server.settings.only
        views = [each for each in self._server.home.jobs() if only is None or each.name == only]
        yield from _by_part(views)
        yield from _of_jobs(views)
        yield from self._durations(views)
        yield from self._of_server()

    def _durations(self, views: list[JobView]) -> Iterator[Metric]:
        home = self._server.home
        batches = GaugeMetricFamily(
            "headgate_batch_duration_seconds", "Of batches in the last minute.", labels=["job"]
        )
        checkpoints = GaugeMetricFamily(
            "headgate_checkpoint_duration_seconds", "Of the last kept checkpoint.", labels=["job"]
        )
        for view in views:
            took = _batch_took(home, view)
            if took is not None:
                batches.add_metric([view.name], took)
            kept = home.last_checkpoint_took(view)
            if kept is not None:
                checkpoints.add_metric([view.name], kept.total_seconds())
        yield batches
        yield checkpoints

    def _of_server(self) -> Iterator[Metric]:
        running = sum(not each.is_over for each in self._server.operations.list())
        yield GaugeMetricFamily(
            "headgate_operations_running", "Operations under way.", value=running
        )


def _by_part(views: list[JobView]) -> Iterator[Metric]:
    for name, told, label, field in _COUNTERS:
        counter = CounterMetricFamily(name, told, labels=["job", label])
        for view, part, value in _parts(views, field):
            counter.add_metric([view.name, part], value)
        yield counter
    for name, told, label, field in _GAUGES:
        gauge = GaugeMetricFamily(name, told, labels=["job", label])
        for view, part, value in _parts(views, field):
            gauge.add_metric([view.name, part], value)
        yield gauge


def _parts(views: list[JobView], field: str) -> Iterator[tuple[JobView, str, float]]:
    for view in views:
        found = view.status.get(field)
        if isinstance(found, Mapping):
            yield from ((view, str(part), float(value)) for part, value in found.items())


def _of_jobs(views: list[JobView]) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "headgate_job_state", "1 for the state that a job is in.", labels=["job", "state"]
    )
    for view in views:
        for state in _STATES:
            states.add_metric([view.name, state], float(view.state == state))
    yield states
    figures = (
        ("headgate_job_up", "1 while a process supervises the job.", lambda v: float(v.is_alive)),
        ("headgate_job_uptime_seconds", "Since the job was started.", _uptime),
        ("headgate_job_attempt", "Attempts since the job was started.", lambda v: float(v.attempt)),
        ("headgate_records_per_second", "Over the last batches.", lambda v: float(v.records_per_s)),
        ("headgate_checkpoint_age_seconds", "Since the last kept checkpoint.", _checkpoint_age),
    )
    for name, told, read in figures:
        gauge = GaugeMetricFamily(name, told, labels=["job"])
        for view in views:
            value = read(view)
            if value is not None:
                gauge.add_metric([view.name], value)
        yield gauge
    restarts = CounterMetricFamily(
        "headgate_job_restarts", "Restarts after a failure.", labels=["job"]
    )
    for view in views:
        restarts.add_metric([view.name], float(view.status.get("restarts") or 0))
    yield restarts


def _uptime(view: JobView) -> float | None:
    return None if view.uptime is None else max(0.0, view.uptime.total_seconds())


def _batch_took(home: FolderHome, view: JobView) -> float | None:
    if not view.is_alive:
        return None
    try:
        samples = home.samples(view.name, since=datetime.now(UTC) - timedelta(minutes=1), points=60)
    except HeadgateError:
        return None
    known = [each for each in samples.batch_ms if each is not None]
    return known[-1] / 1000 if known else None


def _checkpoint_age(view: JobView) -> float | None:
    if view.checkpoint_at is None:
        return None
    return max(0.0, (datetime.now(UTC) - view.checkpoint_at).total_seconds())
