"""One metric, and the figures of a job that metrics are read from."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.engine.attempt.executors import Executors
from headgate.engine.attempt.vitals import Vitals
from headgate.jobs.metrics.counters import Counters
from headgate.jobs.metrics.histogram import Histogram
from headgate.jobs.views.job import JobView

PREFIX = "headgate_"


class Kind(enum.StrEnum):
    """The types of metrics, as Prometheus names them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Everything that the metrics of a job are read from, at one moment.

    Attributes:
        checkpoint: The newest kept one.
        vitals: Those of the driver; None unless it runs.
        executors: Likewise.
    """

    view: JobView
    counters: Counters
    checkpoint: Checkpoint | None
    vitals: Vitals | None
    executors: Executors | None
    now: datetime

    def of_status(self, field: str) -> Mapping[str, Any]:
        """Return a mapping of the job's last status; empty if that has none."""
        values = self.view.status.get(field)
        return values if isinstance(values, Mapping) else {}

    def name_of(self, operator: str) -> str:
        """Return the name that the flow gives an operator; empty if it gives none."""
        # To Prometheus, an empty label is none.
        return str(self.of_status("names").get(operator, ""))


# The values of the labels besides the job, and the value.
Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram]


@dataclass(frozen=True, slots=True)
class JobMetric:
    """A metric that each job has.

    Attributes:
        name: Without prefix, and without the `_total` of a counter.
        labels: Besides `job`.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    read: Callable[[JobFigures], Iterable[Sample]]

    @property
    def full_name(self) -> str:
        """The name as queries use it."""
        return f"{PREFIX}{self.name}{'_total' if self.kind is Kind.COUNTER else ''}"
