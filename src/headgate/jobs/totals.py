"""What a start of a job has done so far: an immutable snapshot beside the running query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headgate.engine.progress import BatchReport

# The rate is over this many last batches, so that it follows the present.
_RATE_BATCHES = 5


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the job was started this time.

    Attributes:
        inputs: Records read, by source.
        outputs: Rows written, by output; dead letters and side outputs nobody uses among them.
        lag_bytes: What is left to read, by source, on logs that count bytes.
        lag_records: Likewise on logs that count records.
        lag_s: The age of the oldest unread record in seconds, by source, where it is known.
        state_rows: Rows held, by operator.
        batch: The last batch that committed, or None before the first.
        recent: Rows and seconds of the last few batches.
        watermark: That of the last batch; None where there is none.
    """

    inputs: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)
    lag_bytes: Mapping[str, int] = field(default_factory=dict)
    lag_records: Mapping[str, int] = field(default_factory=dict)
    lag_s: Mapping[str, float] = field(default_factory=dict)
    state_rows: Mapping[str, int] = field(default_factory=dict)
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    batch: int | None = None
    batches: int = 0
    committed: datetime | None = None
    recent: tuple[tuple[int, float], ...] = ()
    watermark: datetime | None = None

    def plus(self, report: BatchReport) -> Totals:
        """Return the totals with one more batch."""
        sources = report.sources.items()
        seconds = report.duration.total_seconds()
        return replace(
            self,
            inputs=_sum(self.inputs, {name: source.rows for name, source in sources}),
            outputs=_sum(self.outputs, report.outputs),
            lag_bytes=_known({name: source.lag_bytes for name, source in sources}),
            lag_records=_known({name: source.lag_records for name, source in sources}),
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
        )

    @property
    def rate(self) -> float:
        """Records a second while the last few batches ran."""
        seconds = sum(each[1] for each in self.recent)
        return sum(each[0] for each in self.recent) / seconds if seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the totals as JSON values."""
        return {
            "inputs": dict(self.inputs),
            "outputs": dict(self.outputs),
            "lag_bytes": dict(self.lag_bytes),
            "lag_records": dict(self.lag_records),
            "lag_s": dict(self.lag_s),
            "state_rows": dict(self.state_rows),
            "state_bytes": dict(self.state_bytes),
            "batch": self.batch,
            "batches": self.batches,
            "records_per_s": round(self.rate),
            "watermark": None if self.watermark is None else self.watermark.isoformat(),
        }


def _known(counts: Mapping[str, int | None]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count is not None}


def _sum(before: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: before.get(name, 0) + more.get(name, 0) for name in {**before, **more}}
