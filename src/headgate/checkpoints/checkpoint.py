"""What a checkpoint is to jobs, the CLI, REST and the console."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from headgate.checkpoints.manifest import Kind, Manifest, SourceFacts, StateFacts
from headgate.checkpoints.problems import Problem

COMPLETED = "COMPLETED"
DAMAGED = "DAMAGED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that a job keeps, or a savepoint.

    The manifest in its folder has more: the flow, its schemas and the files.

    Attributes:
        id: `chk-17`, or the name of a savepoint's folder.
        run: The lineage it was taken in.
        batch: The batch it was taken after.
        completed_at: When that batch was committed.
        duration: How long that batch took.
        sources: Its position in each source, by source id.
        state: What each operator holds, by uid.
        full_bytes: The size of all its files.
        new_bytes: The size of the files that the checkpoint before it does not have.
        files: How many files it has.
        problems: What is wrong with its files, if they were checked.
        rows: Rows that Spark counted in the state of each operator; None if it did not.
    """

    id: str
    kind: Kind
    run: str
    folder: Path
    batch: int
    completed_at: datetime
    duration: timedelta = timedelta(0)
    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    watermark: datetime | None = None
    state: Mapping[str, StateFacts] = field(default_factory=dict)
    full_bytes: int = 0
    new_bytes: int = 0
    parallelism: int = 1
    files: int = 0
    pinned: bool = False
    problems: tuple[Problem, ...] = ()
    rows: Mapping[str, int] | None = None

    @property
    def status(self) -> str:
        """COMPLETED, or DAMAGED if a file is not as it was written."""
        return DAMAGED if self.problems else COMPLETED

    @property
    def records(self) -> int:
        """Records read from all sources since its run began."""
        return sum(source.records for source in self.sources.values())

    @property
    def source(self) -> str:
        """What `restore --from` takes to mean this checkpoint and no other."""
        return f"{self.run}/{self.id}" if self.kind is Kind.CHECKPOINT else self.id

    def to_json(self) -> dict[str, Any]:
        """Return the checkpoint as JSON values; positions are JSON themselves."""
        return {
            **_common_json(self),
            "batch": self.batch,
            "completed_at": self.completed_at.isoformat(),
            "duration_ms": round(self.duration.total_seconds() * 1000),
            "sources": {
                name: {"records": source.records, "position": _parse_position(source.position)}
                for name, source in self.sources.items()
            },
            "watermark": None if self.watermark is None else self.watermark.isoformat(),
            "state": {
                uid: {"rows": held.rows, "bytes": held.bytes} for uid, held in self.state.items()
            },
            "full_bytes": self.full_bytes,
            "new_bytes": self.new_bytes,
            "parallelism": self.parallelism,
            "files": self.files,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableCheckpoint:
    """A folder whose manifest cannot be read, or Spark's own folder, which has none.

    Attributes:
        id: The name of the folder, or `present` for Spark's.
        kind: `checkpoint`, `savepoint`, or `folder` for Spark's.
        run: The lineage; None if it is not known.
        problems: What is wrong with it; Spark's folder may have none.
    """

    id: str
    kind: str
    run: str | None
    folder: Path
    problems: tuple[Problem, ...] = ()
    pinned: bool = False
    rows: Mapping[str, int] | None = None

    @property
    def status(self) -> str:
        """COMPLETED, or DAMAGED if a file is not as it was written."""
        return DAMAGED if self.problems else COMPLETED

    def to_json(self) -> dict[str, Any]:
        """Return what is known of the folder as JSON values."""
        return _common_json(self)


AnyCheckpoint: TypeAlias = Checkpoint | UnreadableCheckpoint


def describe_checkpoint(folder: Path, manifest: Manifest, *, pinned: bool = False) -> Checkpoint:
    """Return the checkpoint that a folder with a manifest is."""
    facts = manifest.facts
    return Checkpoint(
        id=manifest.id if manifest.kind is Kind.CHECKPOINT else folder.name,
        kind=manifest.kind,
        run=facts.lineage,
        folder=folder,
        batch=manifest.batch,
        completed_at=facts.completed_at,
        duration=facts.duration,
        sources=facts.sources,
        watermark=facts.watermark,
        state=facts.state,
        full_bytes=manifest.full_bytes,
        new_bytes=manifest.new_bytes,
        parallelism=facts.parallelism,
        files=len(manifest.files),
        pinned=pinned,
    )


def parse_checkpoint(content: Mapping[str, Any]) -> AnyCheckpoint:
    """Return the checkpoint that `to_json` wrote."""
    parts = [str(problem).partition(": ") for problem in content["problems"]]
    problems = tuple(Problem(file, what) for file, _, what in parts)
    folder = Path(content["folder"])
    if "batch" not in content:
        return UnreadableCheckpoint(
            id=str(content["id"]),
            kind=str(content["kind"]),
            run=content["run"],
            folder=folder,
            problems=problems,
        )
    watermark = content["watermark"]
    return Checkpoint(
        id=str(content["id"]),
        kind=Kind(content["kind"]),
        run=str(content["run"]),
        folder=folder,
        batch=int(content["batch"]),
        completed_at=datetime.fromisoformat(content["completed_at"]),
        duration=timedelta(milliseconds=content["duration_ms"]),
        sources={
            name: SourceFacts(_render_position(source["position"]), int(source["records"]))
            for name, source in content["sources"].items()
        },
        watermark=None if watermark is None else datetime.fromisoformat(watermark),
        state={
            uid: StateFacts(int(held["rows"]), int(held["bytes"]))
            for uid, held in content["state"].items()
        },
        full_bytes=int(content["full_bytes"]),
        new_bytes=int(content["new_bytes"]),
        parallelism=int(content["parallelism"]),
        files=int(content["files"]),
        pinned=bool(content["pinned"]),
        problems=problems,
        rows=content["rows"],
    )


def _common_json(checkpoint: AnyCheckpoint) -> dict[str, Any]:
    return {
        "id": checkpoint.id,
        "status": checkpoint.status,
        "kind": str(checkpoint.kind),
        "run": checkpoint.run,
        "pinned": checkpoint.pinned,
        "folder": str(checkpoint.folder),
        "problems": [str(problem) for problem in checkpoint.problems],
        "rows": None if checkpoint.rows is None else dict(checkpoint.rows),
    }


def _parse_position(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _render_position(position: Any) -> str | None:
    return position if position is None or isinstance(position, str) else json.dumps(position)
