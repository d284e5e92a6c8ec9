"""Figures of jobs for Prometheus, read when it asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from headgate.errors import HeadgateError
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.views.job import DEAD, JobView
from headgate.server.context import ServerContext

_Family = type[CounterMetricFamily] | type[GaugeMetricFamily]
_COUNTER, _GAUGE = CounterMetricFamily, GaugeMetricFamily
_STATES = (*(state.value for state in JobState), DEAD, "UNREADABLE")

# Metrics by source, output or operator: kind, name, help, label, and the field of a job's status.
_BY_PART: tuple[tuple[_Family, str, str, str, str], ...] = (
    (_COUNTER, "records_in", "Records read since the job was started.", "source", "inputs"),
    (_COUNTER, "records_out", "Rows written since the job was started.", "output", "outputs"),
    (
        _GAUGE,
        "lag_records",
        "Records left to read; on Pulsar an estimate.",
        "source",
        "lag_records",
    ),
    (_GAUGE, "lag_bytes", "Bytes left to read.", "source", "lag_bytes"),
    (_GAUGE, "lag_seconds", "Age of the oldest unread record.", "source", "lag_s"),
    (_GAUGE, "state_rows", "Rows that an operator holds.", "operator", "state_rows"),
    (_GAUGE, "state_bytes", "Estimated bytes of these rows.", "operator", "state_bytes"),
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
        views = self._server.shown_jobs()
        yield from _by_part(views)
        yield from _by_job(views, self._server.home)
        running = sum(not operation.is_over for operation in self._server.operations.list())
        yield GaugeMetricFamily(
            "headgate_operations_running", "Operations under way.", value=running
        )


def _by_part(views: list[JobView]) -> Iterator[Metric]:
    for family, name, description, label, field in _BY_PART:
        named = ["name"] if label == "operator" else []
        metric = family(f"headgate_{name}", description, labels=["job", label, *named])
        for view in views:
            values = view.status.get(field)
            names = view.status.get("names") or {}
            if isinstance(values, Mapping):
                for part, value in values.items():
                    # To Prometheus, an empty label is none.
                    more = [str(names.get(part, ""))] if named else []
                    metric.add_metric([view.name, str(part), *more], float(value))
        yield metric


def _by_job(views: list[JobView], home: FolderHome) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "headgate_job_state", "1 for the state that a job is in.", labels=["job", "state"]
    )
    for view in views:
        for state in _STATES:
            states.add_metric([view.name, state], float(view.state == state))
    yield states
    figures: tuple[tuple[_Family, str, str, Callable[[JobView], float | None]], ...] = (
        (_GAUGE, "job_up", "1 while a process supervises the job.", lambda v: float(v.is_alive)),
        (_GAUGE, "job_uptime_seconds", "Since the job began to run.", _uptime),
        (_GAUGE, "job_attempt", "Attempts since the job was started.", lambda v: float(v.attempt)),
        (_GAUGE, "records_per_second", "Over the last batches; 0 while idle.", _rate),
        (_GAUGE, "checkpoint_age_seconds", "Since the last kept checkpoint.", _checkpoint_age),
        (_COUNTER, "job_restarts", "Restarts after a failure.", _restarts),
        (
            _GAUGE,
            "batch_duration_seconds",
            "Of batches in the last minute.",
            partial(_batch_took, home),
        ),
        (
            _GAUGE,
            "checkpoint_duration_seconds",
            "How long it took to keep the last checkpoint.",
            partial(_checkpoint_took, home),
        ),
    )
    for family, name, description, read in figures:
        metric = family(f"headgate_{name}", description, labels=["job"])
        for view in views:
            value = read(view)
            if value is not None:
                metric.add_metric([view.name], value)
        yield metric


def _rate(view: JobView) -> float:
    return float(view.records_per_s)


def _restarts(view: JobView) -> float:
    return float(view.status.get("restarts") or 0)


def _checkpoint_took(home: FolderHome, view: JobView) -> float | None:
    took = home.last_checkpoint_took(view)
    return None if took is None else took.total_seconds()


def _uptime(view: JobView) -> float | None:
    return None if view.uptime is None else max(0.0, view.uptime.total_seconds())


def _batch_took(home: FolderHome, view: JobView) -> float | None:
    if not view.is_alive:
        return None
    try:
        samples = home.samples(view.name, since=datetime.now(UTC) - timedelta(minutes=1), points=60)
    except HeadgateError:
        return None
    known = [ms for ms in samples.batch_ms if ms is not None]
    return known[-1] / 1000 if known else None


def _checkpoint_age(view: JobView) -> float | None:
    if view.checkpoint_at is None:
        return None
    return max(0.0, (datetime.now(UTC) - view.checkpoint_at).total_seconds())
