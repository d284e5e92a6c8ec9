"""The counters of a job: what it has done since it exists, over all its starts and attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headgate.engine.attempt.progress import PHASES, BatchReport
from headgate.engine.attempt.vitals import Vitals
from headgate.jobs.metrics.histogram import Histogram

# In seconds.
BATCH_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_Count = TypeVar("_Count", int, float)


@dataclass(frozen=True, slots=True)
class PortRows:
    """The rows that left one output of an operator, or its dead letters.

    Attributes:
        output: `out` if it is the only one; `!` for dead letters.
    """

    operator: str
    output: str
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a job has done; no count ever decreases.

    Attributes:
        records_in: Records read, by source.
        records_out: Rows by output, with dead letters and unused side outputs.
        ports: Rows that left each operator, by the name of the port.
        batches: The durations of all batches, in seconds.
        phase_seconds: Their time by phase.
        latency: The time from a record to the commit of its rows, in seconds; None before the
            first row.
        restarts: Attempts that followed another one, by the code of the failure.
        cpu_seconds: Processor time of all drivers, without Python workers and executors.
        gc_seconds: Time of their garbage collections.
    """

    records_in: Mapping[str, int] = field(default_factory=dict)
    records_out: Mapping[str, int] = field(default_factory=dict)
    ports: Mapping[str, PortRows] = field(default_factory=dict)
    batches: Histogram = field(default_factory=lambda: Histogram.empty(BATCH_BOUNDS))
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    latency: Histogram | None = None
    checkpoints: int = 0
    checkpoint_failures: int = 0
    savepoints: int = 0
    savepoint_failures: int = 0
    restarts: Mapping[str, int] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    gc_seconds: float = 0.0
    gc_count: int = 0

    def with_batch(
        self, report: BatchReport, ports: Mapping[str, tuple[str, str]] | None = None
    ) -> Counters:
        """Return the counters after one more batch.

        Args:
            ports: The operator and the output of each port, by its name.
        """
        sources = report.sources.items()
        return replace(
            self,
            records_in=_sum(self.records_in, {name: source.rows for name, source in sources}),
            records_out=_sum(self.records_out, report.outputs),
            ports=_sum_ports(self.ports, report.ports, ports or {}),
            batches=self.batches.with_value(report.duration.total_seconds()),
            phase_seconds=_sum(
                self.phase_seconds,
                {phase: report.spent(phase).total_seconds() for phase in PHASES},
            ),
            latency=_sum_latency(self.latency, report),
        )

    def with_times(self, before: Vitals | None, now: Vitals) -> Counters:
        """Return the counters after what a driver has done since its last vitals, if any."""
        return replace(
            self,
            cpu_seconds=self.cpu_seconds + now.cpu_seconds - (before.cpu_seconds if before else 0),
            gc_seconds=self.gc_seconds + now.gc_seconds - (before.gc_seconds if before else 0),
            gc_count=self.gc_count + now.gc_count - (before.gc_count if before else 0),
        )

    def with_restart(self, cause: str) -> Counters:
        """Return the counters after one more restart."""
        return replace(self, restarts=_sum(self.restarts, {cause: 1}))


def _sum_ports(
    before: Mapping[str, PortRows], more: Mapping[str, int], known: Mapping[str, tuple[str, str]]
) -> dict[str, PortRows]:
    ports = dict(before)
    for port, rows in more.items():
        operator, output = known.get(port, (port.removesuffix("!"), "!" if "!" in port else "out"))
        counted = ports.get(port)
        ports[port] = PortRows(operator, output, rows + (counted.rows if counted else 0))
    return ports


def _sum_latency(before: Histogram | None, report: BatchReport) -> Histogram | None:
    ages = None if report.latency is None else report.latency.ages
    if ages is None:
        return before
    more = Histogram(
        tuple(bound.total_seconds() for bound in ages.bounds), ages.rows, ages.sum.total_seconds()
    )
    return more if before is None else before.plus(more)


def _sum(before: Mapping[str, _Count], more: Mapping[str, _Count]) -> dict[str, _Count]:
    return {name: before.get(name, 0) + more.get(name, 0) for name in {**before, **more}}
