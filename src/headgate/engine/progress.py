"""What a batch did, out of Spark's progress report. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime.fromtimestamp(0, UTC)


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
    lag: timedelta | None
    position: str


@dataclass(frozen=True, slots=True)
class StateProgress:
    """What an operator holds after a batch."""

    rows: int
    bytes: int


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
    """

    batch: int
    started: datetime
    duration: timedelta
    sources: Mapping[str, SourceProgress]
    outputs: Mapping[str, int]
    state: Mapping[str, StateProgress]
    phases: Mapping[str, timedelta]
    watermark: datetime | None = None

    @property
    def rows(self) -> int:
        """Records read from all sources."""
        return sum(source.rows for source in self.sources.values())


def parse_report(
    report: Mapping[str, Any], *, scans: Mapping[str, int], operators: Sequence[str]
) -> BatchReport | None:
    """Return the batch that a progress report tells of, or None if it tells of none.

    Args:
        report: Spark's JSON.
        scans: How often a batch reads each source, by its id; Spark adds the rows of all up.
        operators: Uids in the order rows pass through them.
    """
    phases = {name: timedelta(milliseconds=ms) for name, ms in report["durationMs"].items()}
    if "addBatch" not in phases:
        # Spark reports now and then that it waits: nothing ran.
        return None
    return BatchReport(
        batch=int(report["batchId"]),
        started=datetime.fromisoformat(report["timestamp"]),
        duration=phases.get("triggerExecution", timedelta()),
        sources={
            _source_id(each): _source(each, scans[_source_id(each)])
            for each in report["sources"]
            if _source_id(each) in scans
        },
        outputs={name: int(count) for name, count in report["sink"].get("metrics", {}).items()},
        # Spark lists stateful operators from the sink up.
        state={
            uid: StateProgress(int(each["numRowsTotal"]), int(each["memoryUsedBytes"]))
            for uid, each in zip(reversed(operators), report["stateOperators"], strict=False)
        },
        phases=phases,
        watermark=_watermark(report.get("eventTime", {}).get("watermark")),
    )


def _watermark(text: str | None) -> datetime | None:
    # Spark's watermark is 1970 before there is one.
    found = None if text is None else datetime.fromisoformat(text)
    return None if found is None or found <= _EPOCH else found


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
