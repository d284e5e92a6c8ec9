"""A job's folder as it is after some batches, made by hand: what an audit starts from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stored_run import local

from headgate._codec import encode
from headgate.engine.plan.flow_plan import source_name
from headgate.engine.settings import Delivery
from headgate.flow.graph.graph import Graph
from headgate.jobs.audit.job_audit import AuditRequest
from headgate.jobs.audit.report import Audit
from headgate.jobs.folder_home import FolderHome
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Origin, Run, new_run, write_run
from headgate.jobs.values import RunOptions

BATCH = 4


@dataclass(frozen=True, slots=True)
class AuditedJob:
    """A job that ran, as far as its files tell."""

    home: JobFolder
    run: Run

    @property
    def lineage(self) -> str:
        """The run's name."""
        return self.run.lineage

    def audit(self, **asked: Any) -> Audit:
        """Audit the job."""
        return FolderHome(self.home.root).audit(self.home.name, AuditRequest(**asked))

    def mark(self, source: str, partition: int, offset: int) -> bytes:
        """Return what a row of a record carries in its header."""
        return f"{self.lineage}/{source}/{partition}/{offset}".encode()


def make_job(
    root: Path,
    flow: Graph,
    ends: Mapping[str, str | None],
    *,
    begins: Mapping[str, str] | None = None,
    origin: Origin | None = None,
    delivery: Delivery = Delivery.EXACTLY_ONCE,
) -> AuditedJob:
    """Write the folder of a job.

    Args:
        flow: With its topics bound.
        ends: How far the last batch read each source.
        begins: Where sources were first read, as far as it was noted.
    """
    home = JobFolder(root, flow.name)
    run = new_run(home, flow, parallelism=2, checkpoints=None, now=datetime.now(UTC))
    run = replace(run, origin=origin)
    write_run(home, run)
    options = encode(RunOptions(delivery=delivery, home=root))
    home.write_job(run.lineage, flow="flow.py", options=options)
    home.write_status({"state": "STOPPED", "lineage": run.lineage})
    _write_batch(local(run.checkpoint), ends)
    for source, position in (begins or {}).items():
        folder = run.checkpoint / "sources" / source_name(source)
        folder.mkdir(parents=True)
        (folder / "start-v1.json").write_text(position)
    return AuditedJob(home, run)


def _write_batch(checkpoint: Path, ends: Mapping[str, str | None]) -> None:
    head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}})
    lines = [f"{source_name(name)}:{position or '-'}" for name, position in ends.items()]
    for folder, text in (
        ("offsets", "\n".join(["v2", head, *lines])),
        ("commits", 'v1\n{"nextBatchWatermarkMs":0}'),
    ):
        (checkpoint / folder).mkdir(parents=True)
        (checkpoint / folder / str(BATCH)).write_text(text)


def kafka_position(topic: str, topic_id: str, *following: int) -> str:
    """Return a position on Kafka: the next offset of each partition."""
    topics = {topic: {"id": topic_id, "next": list(following)}}
    return json.dumps({"format": 1, "topics": topics})
