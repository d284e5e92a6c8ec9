"""The counts of a job since its last start: an immutable snapshot beside the running query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_low
from typing import Annotated, Any, TypeVar

from headgate._codec import Form, Moment, alias, left_out, shaped
from headgate.engine.attempt.progress import BatchReport, Latency, StreamTimes, find_holder

# The number of last batches over which rates are calculated.
_RATE_BATCHES = 5
# After this time without a batch, rates are zero; jobs with rare batches have longer.
_IDLE = timedelta(seconds=10)
_Count = TypeVar("_Count", int, float)


@dataclass(frozen=True, slots=True)
class Work:
    """The part of a batch report from which rates are calculated.

    Attributes:
        ports: Rows by port.
        shares: Seconds of each operator, divided by its tasks.
    """

    started: datetime
    ended: datetime
    ports: Mapping[str, int]
    shares: Mapping[str, float]

    def without_rows(self) -> Work:
        """Return the same span of time with no rows and no work."""
        nothing = dict.fromkeys(self.ports, 0), dict.fromkeys(self.shares, 0.0)
        return Work(self.started, self.ended, *nothing)


def _rate(batches: tuple[tuple[int, float], ...]) -> float:
    seconds = sum(batch[1] for batch in batches)
    return sum(batch[0] for batch in batches) / seconds if seconds else 0.0


def _latency_ms(latency: Latency) -> dict[str, int]:
    quantiles = {"p50": latency.p50, "p95": latency.p95, "p99": latency.p99}
    return {name: round(age.total_seconds() * 1000) for name, age in quantiles.items()}


def _read_latency(quantiles: Mapping[str, int]) -> Latency:
    p50, p95, p99 = (timedelta(milliseconds=quantiles[name]) for name in ("p50", "p95", "p99"))
    return Latency(p50, p95, p99, rows=0)


# The JSON has the rate over the last batches, and the latency in milliseconds.
_Recent = Annotated[
    tuple[tuple[int, float], ...],
    Form(
        lambda recent: round(_rate(recent)),
        lambda rate: ((int(rate or 0), 1.0),),
        {"type": "integer"},
    ),
]
_Latency = Annotated[
    Latency,
    Form(
        _latency_ms,
        _read_latency,
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in ("p50", "p95", "p99")},
        },
    ),
]


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the last start of the job.

    Attributes:
        inputs: Records read, by source.
        outputs: Rows written, by output, with dead letters and unused side outputs.
        lag_bytes: Unread bytes, by source, on logs that count bytes.
        lag_records: Unread records, by source, on logs that count records.
        lag_estimated: The sources whose number of unread records is an estimate.
        lag_s: The age of the oldest unread record in seconds, by source, if known.
        state_rows: Rows of state, by operator.
        batch: The last committed batch, or None before the first.
        recent: Rows and seconds of the last few batches.
        watermark: The watermark of the last batch, or None.
        event_times: The event times of each timed stream and its partitions, by source id.
        ports: Rows that left each port of the flow, by its name; `NODE!` for dead letters of a
            node.
        latency: The latency of the last batch that wrote rows of records.
    """

    inputs: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)
    lag_bytes: Mapping[str, int] = field(default_factory=dict)
    lag_records: Mapping[str, int] = field(default_factory=dict)
    lag_estimated: tuple[str, ...] = ()
    lag_s: Mapping[str, float] = field(default_factory=dict)
    state_rows: Mapping[str, int] = field(default_factory=dict)
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None
    batches: int = 0
    committed: Moment | None = field(default=None, metadata=alias("committed_at"))
    recent: _Recent = field(default=(), metadata=alias("records_per_s"))
    watermark: Moment | None = None
    event_times: Mapping[str, StreamTimes] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    latency: _Latency | None = field(default=None, metadata=alias("latency_ms"))
    work: tuple[Work, ...] = field(default=(), metadata=left_out())

    __get_pydantic_core_schema__ = shaped(
        computed={
            "held_back_by": "held_back_by",
            "ports_per_s": "ports_per_s",
            "busy": "busy",
        }
    )

    def plus(self, report: BatchReport) -> Totals:
        """Return the totals after one more batch."""
        sources = report.sources.items()
        seconds = report.duration.total_seconds()
        return replace(
            self,
            inputs=_sum(self.inputs, {name: source.rows for name, source in sources}),
            outputs=_sum(self.outputs, report.outputs),
            lag_bytes=_known({name: source.lag_bytes for name, source in sources}),
            lag_records=_known({name: source.lag_records for name, source in sources}),
            lag_estimated=tuple(name for name, source in sources if source.is_estimate),
            lag_s={
                name: source.lag.total_seconds()
                for name, source in sources
                if source.lag is not None
            },
            state_rows={uid: state.rows for uid, state in report.state.items()},
            state_bytes={uid: state.bytes for uid, state in report.state.items()},
            batch=report.batch,
            batches=self.batches + 1,
            committed=report.started + report.duration,
            recent=(*self.recent, (report.rows, seconds))[-_RATE_BATCHES:],
            watermark=report.watermark,
            event_times=report.event_times,
            ports=_sum(self.ports, report.ports),
            latency=report.latency or self.latency,
            work=(*self.work, _work(report))[-_RATE_BATCHES:],
        )

    def as_of(self, now: datetime) -> Totals:
        """Return the totals at a later moment: all rates are zero if the job is idle by then.

        A job is idle after 10 seconds without a batch, or after twice the usual time between its
        last few batches if that is longer.
        """
        if not self.work or now - self.work[-1].ended <= max(_IDLE, 2 * self._usual_wait()):
            return self
        return replace(self, recent=(), work=tuple(batch.without_rows() for batch in self.work))

    def _usual_wait(self) -> timedelta:
        """Return the median time from the end of a batch to the end of the next one."""
        ends = [self.work[0].started, *(batch.ended for batch in self.work)]
        # The median, since one long pause says nothing about the next one.
        return median_low(later - earlier for earlier, later in pairwise(ends))

    @property
    def rate(self) -> float:
        """Records a second during the last few batches."""
        return _rate(self.recent)

    @property
    def held_back_by(self) -> str | None:
        """The partition that holds the watermark back, if any."""
        return find_holder(self.event_times)

    def _work_span(self) -> float:
        """Return the seconds of the last few batches, including waits between them."""
        if not self.work:
            return 0.0
        return (self.work[-1].ended - self.work[0].started).total_seconds()

    @property
    def busy(self) -> dict[str, float]:
        """Each operator's share of its tasks' time over the last few batches."""
        wall = self._work_span()
        spent: dict[str, float] = {}
        for batch in self.work:
            spent = _sum(spent, batch.shares)
        return {uid: round(min(1.0, share / wall), 4) for uid, share in spent.items() if wall}

    @property
    def ports_per_s(self) -> dict[str, float]:
        """Rows a second that left each port over the last few batches."""
        wall = self._work_span()
        rows: dict[str, int] = {}
        for batch in self.work:
            rows = _sum(rows, batch.ports)
        return {port: round(count / wall, 1) for port, count in rows.items() if wall}


def without_rates(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a job that no process supervises: its last rates are outdated."""
    return {**status, "records_per_s": 0, "ports_per_s": {}, "busy": {}}


def _work(report: BatchReport) -> Work:
    return Work(
        report.started,
        report.started + report.duration,
        report.ports,
        {
            uid: state.busy.total_seconds() / state.tasks
            for uid, state in report.state.items()
            if state.tasks
        },
    )


def _known(counts: Mapping[str, int | None]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}


def _sum(before: Mapping[str, _Count], more: Mapping[str, _Count]) -> dict[str, _Count]:
    return {name: before.get(name, 0) + more.get(name, 0) for name in {**before, **more}}
