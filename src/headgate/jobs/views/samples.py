"""The measurements of a job as series for charts: read from its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from headgate._codec import Moment, Seconds, alias
from headgate.engine.attempt.progress import PHASES
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.supervision.sample_files import Sample, read_since

DEFAULT_POINTS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The measurements of a job: lists of the same length, with one value for each span of `every`.

    A value is None if nothing was measured: the job was not running, or no batch ended in the span.
    Rates and times of batches are averages of the span, lags and latencies its maximum, state and
    watermark its last value.

    Attributes:
        at: The end of each span.
        in_per_s: Records read.
        out_per_s: Rows written to topics.
        inputs: Records a second, by source.
        outputs: Rows a second by output, including outputs that are only counted.
        lag_records: Unread records.
        lag_s: The age of the oldest unread record.
        batch_ms: The time of a batch.
        phases: The time of its phases: waiting, planning, processing, committing.
        latency_p50_ms: From a record's timestamp to the commit of its batch.
    """

    job: str
    every: Seconds = field(metadata=alias("every_s"))
    at: tuple[Moment, ...]
    in_per_s: tuple[float | None, ...]
    out_per_s: tuple[float | None, ...]
    inputs: Mapping[str, tuple[float | None, ...]]
    outputs: Mapping[str, tuple[float | None, ...]]
    lag_records: tuple[int | float | None, ...]
    lag_bytes: tuple[int | float | None, ...]
    lag_s: tuple[int | float | None, ...]
    batch_ms: tuple[float | None, ...]
    phases: Mapping[str, tuple[float | None, ...]]
    latency_p50_ms: tuple[int | None, ...]
    latency_p95_ms: tuple[int | None, ...]
    latency_p99_ms: tuple[int | None, ...]
    state_rows: tuple[int | None, ...]
    state_bytes: tuple[int | None, ...]
    watermark: tuple[Moment | None, ...]


def read_samples(
    home: JobFolder, *, since: datetime | None = None, points: int = DEFAULT_POINTS
) -> Samples:
    """Return the measurements of a job.

    Args:
        since: The first moment; None for all measurements.
        points: The maximum length of the lists.

    Raises:
        HeadgateError: JOB_FORMAT_UNSUPPORTED for files of a newer release.
    """
    first = None if since is None else _ms(since)
    return thin(home.name, list(read_since(home.path, first)), since=first, points=points)


def thin(job: str, samples: Sequence[Sample], *, since: int | None, points: int) -> Samples:
    """Return samples, oldest first, as series of at most `points` values."""
    if not samples:
        return _Buckets(0, 1000, 0).series(job, 0)
    end = max(samples[-1].end, samples[0].end)
    begin = max(samples[0].start, since or 0)
    # Spans are aligned to their width, so that the next look has the same spans.
    width = 1000 * max(1, math.ceil((end - begin) / 1000 / max(1, points - 1)))
    origin = begin // width * width
    buckets = _Buckets(origin, width, max(1, -(-(end - origin) // width)))
    for sample in samples:
        buckets.add(sample)
    return buckets.series(job, end)


class _Buckets:
    """Spans of one width, each with the samples that overlap it."""

    def __init__(self, origin: int, width: int, count: int) -> None:
        self._origin = origin
        self._width = width
        self._count = count
        self._covered = [0.0] * count
        self._written = [0.0] * count
        self._inputs: dict[str, list[float]] = {}
        self._outputs: dict[str, list[float]] = {}
        self._batches = [0.0] * count
        self._took = [[0.0] * count for _ in ("in all", *PHASES)]
        self._lag: list[list[float | None]] = [[None] * count for _ in range(3)]
        self._latency: list[list[int | None]] = [[None] * count for _ in range(3)]
        self._state: list[Mapping[str, Sequence[int]]] = [{} for _ in range(count)]
        self._watermark: list[int | None] = [None] * count

    def add(self, sample: Sample) -> None:
        """Add a sample; its counts are spread over its span."""
        width, span = self._width, sample.span
        # A sample that ends with a bucket does not overlap the next one.
        last = (sample.end - 1 - self._origin) // width
        first = min(last, (sample.start - self._origin) // width)
        if first == last:
            if 0 <= last < self._count:
                self._gather(last, sample, 1.0)
                self._covered[last] += span
            return
        for place in range(max(0, first), min(last, self._count - 1) + 1):
            begin = self._origin + place * width
            shared = min(sample.end, begin + width) - max(sample.start, begin)
            self._gather(place, sample, shared / span)
            self._covered[place] += shared

    def _gather(self, place: int, sample: Sample, part: float) -> None:
        if sample.batches:
            for held, more in ((self._inputs, sample.inputs), (self._outputs, sample.outputs)):
                for name, rows in more.items():
                    series = held.get(name)
                    if series is None:
                        series = held[name] = [0.0] * self._count
                    series[place] += rows * part
            self._written[place] += sample.written * part
            self._batches[place] += sample.batches * part
            for taken, spent in zip(self._took, sample.took or (), strict=False):
                taken[place] += spent * part
        for lags, lag in zip(self._lag, sample.lag, strict=True):
            if lag is not None:
                known = lags[place]
                lags[place] = lag if known is None or lag > known else known
        for latencies, latency in zip(self._latency, sample.latency or (), strict=False):
            before = latencies[place]
            latencies[place] = latency if before is None or latency > before else before
        self._state[place] = sample.state or self._state[place]
        if sample.watermark is not None:
            self._watermark[place] = sample.watermark

    def series(self, job: str, end: int) -> Samples:
        origin, width, count = self._origin, self._width, self._count
        ends = [min(origin + (place + 1) * width, end) for place in range(count)]
        total = [sum(rows[place] for rows in self._inputs.values()) for place in range(count)]
        states = [_state(state) for state in self._state]
        return Samples(
            job=job,
            every=timedelta(milliseconds=width),
            at=tuple(_moment(end) for end in ends),
            in_per_s=self._rates(total),
            out_per_s=self._rates(self._written),
            inputs={name: self._rates(rows) for name, rows in sorted(self._inputs.items())},
            outputs={name: self._rates(rows) for name, rows in sorted(self._outputs.items())},
            lag_records=tuple(self._lag[0]),
            lag_bytes=tuple(self._lag[1]),
            lag_s=tuple(self._lag[2]),
            batch_ms=self._averages(self._took[0]),
            phases={
                name: self._averages(took)
                for name, took in zip(PHASES, self._took[1:], strict=True)
            },
            latency_p50_ms=tuple(self._latency[0]),
            latency_p95_ms=tuple(self._latency[1]),
            latency_p99_ms=tuple(self._latency[2]),
            state_rows=tuple(rows for rows, _ in states),
            state_bytes=tuple(size for _, size in states),
            watermark=tuple(None if ms is None else _moment(ms) for ms in self._watermark),
        )

    def _rates(self, rows: Sequence[float]) -> tuple[float | None, ...]:
        return tuple(
            round(count * 1000 / min(covered, self._width), 2) if covered else None
            for count, covered in zip(rows, self._covered, strict=True)
        )

    def _averages(self, took: Sequence[float]) -> tuple[float | None, ...]:
        return tuple(
            round(spent / batches, 1) if batches else None
            for spent, batches in zip(took, self._batches, strict=True)
        )


def _state(state: Mapping[str, Sequence[int]]) -> tuple[int | None, int | None]:
    if not state:
        return None, None
    return sum(rows for rows, _ in state.values()), sum(size for _, size in state.values())


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
