"""What a batch did, out of Spark's progress report. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate._codec import Moment, Seconds
from headgate.engine.event_times import StreamTimes, parse_stream_times

_EPOCH = datetime.fromtimestamp(0, UTC)
# Beside the rows of each output, the sink's metrics hold one JSON text; no output is called so.
_TELEMETRY = "$telemetry"
# What a stream's clock tells beside its position.
_EVENT_TIME = "eventTime"


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What a batch read of one source, and what is left to read.

    Attributes:
        lag_bytes: None on logs that count records.
        lag_records: None on logs that count bytes; at most so many where offsets have gaps.
        lag: How old the oldest unread record is; zero where nothing is left, None where nobody
            can tell.
        position: Where the batch ends in the source, as JSON text.
    """

    rows: int
    lag_bytes: int | None
    lag_records: int | None
    lag: Seconds | None
    position: str


@dataclass(frozen=True, slots=True)
class StateProgress:
    """What an operator holds after a batch, and the time the batch spent in it.

    Attributes:
        busy: Of all its tasks together: taking rows, calling the operator, handing rows on and
            saving state.
        tasks: How many tasks shared that time; 0 where nobody told.
    """

    rows: int
    bytes: int
    busy: Seconds = timedelta(0)
    tasks: int = 0


@dataclass(frozen=True, slots=True)
class Latency:
    """How old the records behind a batch's rows were when the batch was committed.

    Attributes:
        rows: How many rows that is of: those with one record behind them that has a timestamp.
    """

    p50: Seconds
    p95: Seconds
    p99: Seconds
    rows: int


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One batch that committed.

    Attributes:
        sources: By source id.
        outputs: Rows by destination, among them dead letters and side outputs nobody uses.
        state: By operator uid.
        phases: Where the time went, by Spark's names for it.
        watermark: The event time up to which windows were over in the batch; None in a flow
            without event time, or before its first watermark.
        event_times: How far each timed stream has come after the batch, by source id.
        ports: Rows that left each port of the flow, by its name; dead letters that arose at a
            node under `NODE!`. Empty where the kernel did not count them.
        written: Rows that went to a topic; `outputs` counts others too. None where nobody told.
        latency: None where no row was written that one record stands behind.
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


def parse_report(
    report: Mapping[str, Any],
    *,
    scans: Mapping[str, int],
    operators: Sequence[str],
    repeats: Mapping[str, int] | None = None,
) -> BatchReport | None:
    """Return the batch that a progress report tells of, or None if it tells of none.

    Args:
        report: Spark's JSON.
        scans: How often a batch reads each source, by its id; Spark adds the rows of all up.
        operators: Uids in the order rows pass through them.
        repeats: How often a batch sends the rows of a port, where it is more than once.
    """
    phases = {name: timedelta(milliseconds=ms) for name, ms in report["durationMs"].items()}
    if "addBatch" not in phases:
        # Spark reports now and then that it waits: nothing ran.
        return None
    metrics = dict(report["sink"].get("metrics") or {})
    told = _telemetry(metrics.pop(_TELEMETRY, "{}"))
    return BatchReport(
        batch=int(report["batchId"]),
        started=datetime.fromisoformat(report["timestamp"]),
        duration=phases.get("triggerExecution", timedelta()),
        sources={
            _source_id(each): _source(each, scans[_source_id(each)])
            for each in report["sources"]
            if _source_id(each) in scans
        },
        outputs={name: int(count) for name, count in metrics.items()},
        # Spark lists stateful operators from the sink up.
        state={
            uid: _state(each)
            for uid, each in zip(reversed(operators), report["stateOperators"], strict=False)
        },
        phases=phases,
        watermark=_watermark(report.get("eventTime", {}).get("watermark")),
        event_times=_event_times(report["sources"]),
        ports={
            port: int(count) // (repeats or {}).get(port.removesuffix("!"), 1)
            for port, count in told.get("ports", {}).items()
        },
        written=told.get("written"),
        latency=_latency(told.get("latency")),
    )


def _state(operator: Mapping[str, Any]) -> StateProgress:
    spent = (operator.get(name) or 0 for name in ("allUpdatesTimeMs", "allRemovalsTimeMs"))
    timers = operator.get("customMetrics", {}).get("timerProcessingTimeMs") or 0
    return StateProgress(
        rows=int(operator["numRowsTotal"]),
        bytes=int(operator["memoryUsedBytes"]),
        busy=timedelta(milliseconds=sum(spent) + timers + (operator.get("commitTimeMs") or 0)),
        tasks=int(operator.get("numShufflePartitions") or 0),
    )


def _latency(told: Mapping[str, int] | None) -> Latency | None:
    if not told:
        return None
    p50, p95, p99 = (timedelta(milliseconds=told[name]) for name in ("p50", "p95", "p99"))
    return Latency(p50, p95, p99, int(told["rows"]))


def _telemetry(text: str) -> Mapping[str, Any]:
    """Return what the sink tells beside counts; what cannot be read is no reason to fail."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _watermark(text: str | None) -> datetime | None:
    # Spark's watermark is 1970 before there is one.
    found = None if text is None else datetime.fromisoformat(text)
    return None if found is None or found <= _EPOCH else found


def _event_times(sources: Sequence[Mapping[str, Any]]) -> dict[str, StreamTimes]:
    told = ((each.get("metrics") or {}).get(_EVENT_TIME) for each in sources)
    return dict(parse_stream_times(text) for text in told if text is not None)


def _source_id(source: Mapping[str, Any]) -> str:
    # The gate in front of a source calls itself by the source's id.
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
    )


def _number(metrics: Mapping[str, Any], name: str) -> int | None:
    found = metrics.get(name)
    return None if found is None else int(found)
