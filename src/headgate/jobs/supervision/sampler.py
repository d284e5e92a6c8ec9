"""Samples of a job: one for each second with batches, and one for each ten without."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import datetime, timedelta

from headgate._clock import Clock
from headgate.engine.attempt.progress import PHASES, BatchReport
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.supervision.sample_files import Sample, append, forget

_EVERY = timedelta(seconds=1)
_IDLE_EVERY = timedelta(seconds=10)
_MS = timedelta(milliseconds=1)


class Sampler:
    """Keeps the samples of one job; called on the thread of its supervisor.

    A job never ends because a sample could not be written: the chart has a gap then.
    """

    def __init__(self, home: JobFolder, clock: Clock) -> None:
        self._folder = home.path
        self._clock = clock
        self._pending: Sample | None = None
        self._last = Sample(_ms(clock.now()), 0)
        self._batch_end = self._last.end
        self._written_at = clock.monotonic()

    def batch_committed(self, report: BatchReport) -> None:
        """Take note of a batch."""
        began = max(self._batch_end, min(self._last.end, _ms(report.started)))
        sample = sample_of(report, since=began)
        sample.end = max(sample.end, self._last.end)
        sample.span = sample.end - min(began, sample.end)
        self._batch_end = sample.end
        if self._pending is None:
            self._pending = sample
        else:
            self._pending.add(sample)
            # The lag is that of the last batch within the second.
            self._pending.lag = sample.lag

    def tick(self, state: JobState) -> None:
        """Write a sample if it is due: every second with batches, every ten seconds without."""
        waited = timedelta(seconds=self._clock.monotonic() - self._written_at)
        if self._pending is not None and waited >= _EVERY:
            self.flush()
        elif self._pending is None and waited >= _IDLE_EVERY:
            now = max(_ms(self._clock.now()), self._last.end)
            known = state is JobState.RUNNING
            self._write(
                Sample(
                    now,
                    now - self._last.end,
                    lag=self._last.lag if known else [None, None, None],
                    state=self._last.state,
                    watermark=self._last.watermark,
                )
            )

    def flush(self) -> None:
        """Write what was not written yet."""
        if self._pending is not None:
            self._write(self._pending)
            self._pending = None

    def _write(self, sample: Sample) -> None:
        self._last = sample
        self._written_at = self._clock.monotonic()
        with contextlib.suppress(OSError):
            try:
                append(self._folder, sample)
            except OSError:
                raise
            except Exception:  # noqa: BLE001 - a job does not end for its samples
                # Unreadable files would block all later samples.
                forget(self._folder)


def sample_of(report: BatchReport, *, since: int) -> Sample:
    """Return a batch as a sample of the time since a moment in epoch milliseconds."""
    end = _ms(report.started + report.duration)
    sources = report.sources.values()
    ages = [source.lag.total_seconds() for source in sources if source.lag is not None]
    took = [report.duration / _MS, *(report.spent(phase) / _MS for phase in PHASES)]
    latency = report.latency
    percentiles = () if latency is None else (latency.p50, latency.p95, latency.p99)
    return Sample(
        end,
        max(0, end - since),
        inputs={name: source.rows for name, source in report.sources.items()},
        outputs=dict(report.outputs),
        written=sum(report.outputs.values()) if report.written is None else report.written,
        lag=[
            _sum(source.lag_records for source in sources),
            _sum(source.lag_bytes for source in sources),
            round(max(ages), 3) if ages else None,
        ],
        batches=1,
        took=took,
        state={uid: [state.rows, state.bytes] for uid, state in report.state.items()},
        watermark=None if report.watermark is None else _ms(report.watermark),
        latency=[round(percentile / _MS) for percentile in percentiles] or None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
