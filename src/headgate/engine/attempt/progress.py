"""The result of a batch, from Spark's progress report. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate._codec import Moment, Seconds

_EPOCH = datetime.fromtimestamp(0, UTC)
# The sink's metrics hold the rows of each output, and one JSON text under this name.
_TELEMETRY = "$telemetry"
# The phases of a batch, in their order, and Spark's names for their parts.
PHASES: Mapping[str, tuple[str, ...]] = {
    "waiting": ("latestOffset",),
    "planning": ("queryPlanning", "getBatch", "walCommit"),
    "processing": ("addBatch",),
    "committing": ("commitOffsets", "commitBatch"),
}
# The metrics of a stream's clock beside its position.
_EVENT_TIME = "eventTime"
# The time of a drained stream is after the last moment with a date.
_LAST_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What a batch read from one source, and its lag.

    Attributes:
        lag_bytes: None on logs that count records.
        lag_records: None on logs that count bytes; an upper bound if offsets have gaps.
        lag: The age of the oldest unread record; zero if there is none, None if unknown.
        position: The position in the source after the batch, as JSON text.
        is_estimate: True if the log cannot count the unread records, as Pulsar with its batches.
    """

    rows: int
    lag_bytes: int | None
    lag_records: int | None
    lag: Seconds | None
    position: str
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class StateProgress:
    """The state of an operator after a batch, and the time that the batch spent in it.

    Attributes:
        bytes: The size of the rows. Spark's report has that of RocksDB's files alone, which lag
            behind the rows; a job's supervisor estimates it (`StateSizes`).
        busy: The total time of all tasks: receiving rows, calling the operator, sending rows and
            saving state.
        tasks: The number of tasks that shared that time; 0 if unknown.
        entries: The entries of the store: the rows, and timers and other internal ones.
        writes: The number of entries that the batch wrote.
        written_bytes: Their size in the store.
    """

    rows: int
    bytes: int
    busy: Seconds = timedelta(0)
    tasks: int = 0
    entries: int = 0
    writes: int = 0
    written_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Ages:
    """A histogram of ages.

    Attributes:
        bounds: Upper bounds, ascending.
        rows: The rows above the bound before and up to each bound, then those above the last.
        sum: The sum of the ages of all rows.
    """

    bounds: tuple[Seconds, ...]
    rows: tuple[int, ...]
    sum: Seconds


@dataclass(frozen=True, slots=True)
class Latency:
    """The age of the records behind a batch's rows when the batch was committed.

    Attributes:
        rows: The number of rows that came from one record with a timestamp.
    """

    p50: Seconds
    p95: Seconds
    p99: Seconds
    rows: int
    ages: Ages | None = None


@dataclass(frozen=True, slots=True)
class PartitionTime:
    """The event time of one partition.

    Attributes:
        time: Its greatest event time; None before its first event.
        idle: True if the watermark does not wait for it.
    """

    time: Moment | None
    idle: bool


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The event time of one stream.

    Attributes:
        watermark: Its limit for the flow's watermark; None before its first event.
        held_back_by: The slowest partition that is not idle; None if all are idle.
        partitions: By name, such as `orders-3`.
    """

    watermark: Moment | None
    held_back_by: str | None
    partitions: Mapping[str, PartitionTime]


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A committed batch.

    Attributes:
        sources: By source id.
        outputs: Rows by destination, including dead letters and unused side outputs.
        state: By operator uid.
        phases: The time of each phase, by Spark's names.
        watermark: The event time up to which windows were closed in the batch; None without event
            time, or before the first watermark.
        event_times: The event time of each timed stream after the batch, by source id.
        ports: Rows by port of the flow; dead letters of a node under `NODE!`. Empty if the kernel
            did not count them.
        written: Rows written to a topic; `outputs` counts others too. None if unknown.
        latency: None if no written row came from a single record.
    """

    batch: int
    started: Moment
    duration: Seconds
    sources: Mapping[str, SourceProgress]
    outputs: Mapping[str, int]
    state: Mapping[str, StateProgress]
    phases: Mapping[str, Seconds]
    watermark: Moment | None = None
    event_times: Mapping[str, StreamTimes] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    written: int | None = None
    latency: Latency | None = None

    @property
    def rows(self) -> int:
        """Records read from all sources."""
        return sum(source.rows for source in self.sources.values())

    def spent(self, phase: str) -> timedelta:
        """Return the time of one of `PHASES`."""
        return sum((self.phases.get(name, timedelta()) for name in PHASES[phase]), timedelta())


def parse_report(
    report: Mapping[str, Any],
    *,
    scans: Mapping[str, int],
    operators: Sequence[str],
    repeats: Mapping[str, int] | None = None,
) -> BatchReport | None:
    """Return the batch of a progress report, or None if it reports none.

    Args:
        report: Spark's JSON.
        scans: How often a batch reads each source, by id; Spark adds up the rows of all.
        operators: Uids in the order rows pass through them.
        repeats: How often a batch sends the rows of a port, if more than once.
    """
    phases = {name: timedelta(milliseconds=ms) for name, ms in report["durationMs"].items()}
    if "addBatch" not in phases:
        # Spark reports from time to time that it waits: nothing ran.
        return None
    metrics = dict(report["sink"].get("metrics") or {})
    details = _telemetry(metrics.pop(_TELEMETRY, "{}"))
    return BatchReport(
        batch=int(report["batchId"]),
        started=datetime.fromisoformat(report["timestamp"]),
        duration=phases.get("triggerExecution", timedelta()),
        sources={
            _source_id(part): _source(part, scans[_source_id(part)])
            for part in report["sources"]
            if _source_id(part) in scans
        },
        outputs={name: int(count) for name, count in metrics.items()},
        # Spark lists stateful operators from the sink upwards.
        state={
            uid: _state(part)
            for uid, part in zip(reversed(operators), report["stateOperators"], strict=False)
        },
        phases=phases,
        watermark=_watermark(report.get("eventTime", {}).get("watermark")),
        event_times=_event_times(report["sources"]),
        ports={
            port: int(count) // (repeats or {}).get(port.removesuffix("!"), 1)
            for port, count in details.get("ports", {}).items()
        },
        written=details.get("written"),
        latency=_latency(details.get("latency")),
    )


def parse_stream_times(text: str) -> tuple[str, StreamTimes]:
    """Return a stream's id and its times from a clock's report in the kernel's format."""
    report = json.loads(text)
    partitions = {
        name: PartitionTime(_of_millis(partition["time"]), bool(partition["idle"]))
        for name, partition in report["partitions"].items()
    }
    return report["stream"], StreamTimes(
        _of_millis(report["watermark"]), report["slowest"], partitions
    )


def find_holder(streams: Mapping[str, StreamTimes]) -> str | None:
    """Return the partition that holds back the flow's watermark; None if there is only one."""
    if sum(len(stream.partitions) for stream in streams.values()) < 2:
        return None
    slowest = min(streams.values(), key=lambda stream: stream.watermark or _EPOCH)
    return slowest.held_back_by


def _of_millis(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + timedelta(milliseconds=min(ms, _LAST_MS))


def _state(operator: Mapping[str, Any]) -> StateProgress:
    spent = (operator.get(name) or 0 for name in ("allUpdatesTimeMs", "allRemovalsTimeMs"))
    metrics = operator.get("customMetrics", {})
    timers = metrics.get("timerProcessingTimeMs") or 0
    rows = int(operator["numRowsTotal"])
    return StateProgress(
        rows=rows,
        # Not memoryUsedBytes: RocksDB's caches are shared by all state and grow with its use.
        bytes=_count(metrics, "rocksdbSstFileSize"),
        busy=timedelta(milliseconds=sum(spent) + timers + (operator.get("commitTimeMs") or 0)),
        tasks=int(operator.get("numShufflePartitions") or 0),
        entries=rows + _count(metrics, "rocksdbNumInternalColFamiliesKeys"),
        writes=_count(metrics, "rocksdbPutCount"),
        written_bytes=_count(metrics, "rocksdbTotalBytesWritten"),
    )


def _count(metrics: Mapping[str, Any], name: str) -> int:
    return max(0, int(metrics.get(name) or 0))


def _latency(latency: Mapping[str, Any] | None) -> Latency | None:
    if not latency:
        return None
    p50, p95, p99 = (timedelta(milliseconds=latency[name]) for name in ("p50", "p95", "p99"))
    ages = None
    if "bounds" in latency:
        ages = Ages(
            tuple(timedelta(milliseconds=bound) for bound in latency["bounds"]),
            tuple(latency["counts"]),
            timedelta(milliseconds=latency["sum"]),
        )
    return Latency(p50, p95, p99, int(latency["rows"]), ages)


def _telemetry(text: str) -> Mapping[str, Any]:
    """Return the sink's details; an unreadable text is ignored."""
    try:
        values = json.loads(text)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _watermark(text: str | None) -> datetime | None:
    # Spark's watermark is 1970 before the first one.
    watermark = None if text is None else datetime.fromisoformat(text)
    return None if watermark is None or watermark <= _EPOCH else watermark


def _event_times(sources: Sequence[Mapping[str, Any]]) -> dict[str, StreamTimes]:
    reports = ((source.get("metrics") or {}).get(_EVENT_TIME) for source in sources)
    return dict(parse_stream_times(text) for text in reports if text is not None)


def _source_id(source: Mapping[str, Any]) -> str:
    # The gate of a source has the source's id.
    return str(source["description"])


def _source(source: Mapping[str, Any], scans: int) -> SourceProgress:
    metrics = source.get("metrics", {})
    age = _number(metrics, "lagMs")
    return SourceProgress(
        rows=int(source["numInputRows"]) // scans,
        lag_bytes=_number(metrics, "lagBytes"),
        lag_records=_number(metrics, "lagRecords"),
        lag=None if age is None else timedelta(milliseconds=age),
        position=json.dumps(source["endOffset"]),
        is_estimate=metrics.get("lagEstimated") == "true",
    )


def _number(metrics: Mapping[str, Any], name: str) -> int | None:
    number = metrics.get(name)
    return None if number is None else int(number)
