"""Runs of flows with windows: which events each batch held, its watermark, and what it wrote."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import Bench
from window_reference import Batch, Event, Row

from headgate import Flow
from headgate.checkpoints.sparklog import list_commits, read_batch
from headgate.engine.plan.flow_plan import source_name
from headgate.flow.operators.aggregates import Aggregate
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import write_intent
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.values import JobSnapshot
from headgate.windows import (
    approx_count_distinct,
    avg,
    collect,
    count,
    count_distinct,
    first,
    last,
)
from headgate.windows import max as greatest
from headgate.windows import min as least
from headgate.windows import sum as total

SCHEMA = "n BIGINT NOT NULL, key STRING, at BIGINT, v BIGINT, x DOUBLE, s STRING, by STRING"
PATIENCE = 120


def aggregated() -> dict[str, Aggregate]:
    """Return the aggregates of every window under test: the reference's, and an approximation."""
    return {
        "hits": count(),
        "some": count("v"),
        "total": total("v"),
        "mass": total("x"),
        "low": least("s"),
        "high": greatest("v"),
        "mean": avg("x"),
        "oldest": first("s"),
        "newest": last("v"),
        "kinds": count_distinct("v"),
        "about": approx_count_distinct("v"),
        "seen": collect("n", 5),
    }


def as_row(made: Row) -> Row:
    """Return a row of `updates` as the reference has it; what no reference can know is checked."""
    row = dict(made)
    datetime.fromisoformat(row.pop("processed_at"))
    about = row.pop("about")
    assert abs(about - row["kinds"]) <= 1 + row["kinds"] * 0.05, made
    for bound in ("window_start", "window_end"):
        row[bound] = to_ms(row[bound])
    return row


def to_ms(time: str) -> int:
    """Return a time of a row in epoch milliseconds."""
    return round(datetime.fromisoformat(time).timestamp() * 1000)


@dataclass
class TimedRun:
    """A job on embedded topics whose every file, batch and row is remembered.

    Attributes:
        files: The events of each file of a stream, in the order they were put.
    """

    bench: Bench
    flow: Flow
    files: dict[str, list[list[Event]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def home(self) -> JobFolder:
        """The job's folder."""
        return JobFolder(self.bench.home, self.flow.name)

    def put(self, stream: str, events: list[Event]) -> None:
        """Publish a file of events."""
        self.files[stream].append(events)
        self.bench.put(stream, [asdict(event) for event in events])

    def drain(self, **options: Any) -> JobSnapshot:
        """Run the job, and ask it to read what is there, close every window and stop."""
        asked = False

        def watch(now: JobSnapshot) -> None:
            nonlocal asked
            if now.state is JobState.RUNNING and not asked:
                asked = True
                write_intent(self.home, Verb.STOP, {"drain": True, "savepoint": None}, by="a test")

        return self.bench.run(self.flow, until_caught_up=False, watch=watch, **options)

    def checkpoint(self) -> Path:
        """Return Spark's folder of the present run."""
        lineage = self.home.find_present_run()
        assert lineage is not None
        return self.home.run_folder(lineage) / "checkpoint"

    def last_commit(self) -> int:
        """Return the number of the newest batch that committed; -1 before the first."""
        if self.home.find_present_run() is None:
            return -1
        return max(list_commits(self.checkpoint()), default=-1)

    def batches(self) -> list[Batch]:
        """Return what each batch held, out of Spark's own log; streams in the flow's order."""
        numbers = list_commits(self.checkpoint())
        assert numbers == list(range(len(numbers))), "a batch was purged"
        placed = {stream: _places(files) for stream, files in self.files.items()}
        before = dict.fromkeys(placed, (0, 0))
        batches = []
        for number in numbers:
            begun = read_batch(self.checkpoint(), number)
            events: list[Event] = []
            for stream, places in placed.items():
                text = begun.positions.get(source_name(stream))
                end = before[stream] if text is None else _position(text)
                events += [each for at, each in places if before[stream] <= at < end]
                before[stream] = end
            batches.append(Batch(begun.watermark_ms, tuple(events)))
        return batches

    def rows(self, topic: str) -> dict[int, list[Any]]:
        """Return what each batch wrote to a topic."""
        found: dict[int, list[Any]] = defaultdict(list)
        for file in sorted((self.bench.topics / topic).glob("part-*/*.jsonl")):
            batch = int(file.stem.split("-")[-2])
            lines = file.read_text(encoding="utf-8").splitlines()
            found[batch] += [json.loads(line) for line in lines]
        return found


def _position(text: str) -> tuple[int, int]:
    position = json.loads(text)
    return position["file"], position["byte"]


def _places(files: list[list[Event]]) -> list[tuple[tuple[int, int], Event]]:
    """Return each event with the file and the byte its line begins at."""
    placed = []
    for number, events in enumerate(files):
        at = 0
        for event in events:
            placed.append(((number, at), event))
            at += len(json.dumps(asdict(event)).encode()) + 1
    return placed
