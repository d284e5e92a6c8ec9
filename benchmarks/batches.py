"""What the batches of a run did, and how fast it was after its first fifth."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_REPORT = "Streaming query made progress: "


@dataclass(frozen=True, slots=True)
class Mark:
    """How many records had been read at a moment, in seconds since the epoch."""

    at: float
    records: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch that committed.

    Attributes:
        started: In seconds since the epoch.
        records: How many it read.
        phases: Where its time went in milliseconds, by Spark's names; `triggerExecution` is all
            of it.
        state_bytes: The size of the state's files.
    """

    started: float
    records: int
    phases: Mapping[str, int]
    state_bytes: int

    @property
    def ended(self) -> float:
        """When it had committed, in seconds since the epoch."""
        return self.started + self.phases["triggerExecution"] / 1000


def steady_rate(marks: Sequence[Mark]) -> float:
    """Return records per second from the mark that reached a fifth of all to the last one.

    By then the JVM has compiled most of what it will. Where the last mark is the one, it counts
    from the mark before.

    Args:
        marks: Two or more, the first with no records.
    """
    last = marks[-1]
    fifth = next(mark for mark in marks if mark.records >= last.records / 5)
    if fifth is last:
        fifth = marks[-2]
    return (last.records - fifth.records) / (last.at - fifth.at)


def to_marks(batches: Sequence[Batch]) -> list[Mark]:
    """Return how many records had been read when the first batch began, and at the end of each."""
    marks = [Mark(batches[0].started, 0)]
    for batch in batches:
        if batch.records:
            marks.append(Mark(batch.ended, marks[-1].records + batch.records))
    return marks


def median_phases(batches: Sequence[Batch]) -> dict[str, float]:
    """Return the median milliseconds of each phase, the longest first."""
    names = {name for batch in batches for name in batch.phases}
    medians = {
        name: statistics.median(batch.phases.get(name, 0) for batch in batches) for name in names
    }
    return dict(sorted(medians.items(), key=lambda each: -each[1]))


def read_batches(log: Path, *, since: float, sources: Collection[str]) -> list[Batch]:
    """Return the batches that Spark's log tells of, oldest first.

    Args:
        log: The job's logs/spark.log; what was rolled away beside it is read too.
        since: Only batches that started at or after this moment, in seconds since the epoch.
        sources: The streams whose records count.
    """
    files = [log, *log.parent.glob(f"{log.name}.*")]
    found = (
        batch for file in files for batch in _batches(file.read_text(encoding="utf-8"), sources)
    )
    return sorted(
        (batch for batch in found if batch.started >= since), key=lambda batch: batch.started
    )


def _batches(text: str, sources: Collection[str]) -> Iterator[Batch]:
    decoder = json.JSONDecoder()
    place = text.find(_REPORT)
    while place >= 0:
        report, end = decoder.raw_decode(text, place + len(_REPORT))
        if "addBatch" in report["durationMs"]:
            yield to_batch(report, sources)
        place = text.find(_REPORT, end)


def to_batch(report: Mapping[str, Any], sources: Collection[str] | None) -> Batch:
    """Return the batch that a progress report of Spark's tells of.

    Args:
        sources: The streams whose records count; None for every source.
    """
    return Batch(
        started=datetime.fromisoformat(report["timestamp"]).timestamp(),
        records=sum(
            int(each["numInputRows"])
            for each in report["sources"]
            # The gate in front of a source calls itself by the source's id.
            if sources is None or each["description"] in sources
        ),
        phases=report["durationMs"],
        state_bytes=sum(
            int(each["customMetrics"].get("rocksdbSstFileSize", 0))
            for each in report["stateOperators"]
        ),
    )
