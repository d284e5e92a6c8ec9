"""What a checkpoint is to jobs, the CLI, REST and the console."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, TypeAlias

from headgate._codec import Form, Moment, alias, shaped
from headgate._locations import Location
from headgate.checkpoints.manifest import Kind, Manifest, SourceFacts, StateFacts
from headgate.checkpoints.problems import Problem

COMPLETED = "COMPLETED"
DAMAGED = "DAMAGED"


def _parse_problem(text: str) -> Problem:
    file, _, what = text.partition(": ")
    return Problem(file, what)


_Problem = Annotated[Problem, Form(str, _parse_problem, {"type": "string"})]
_Milliseconds = Annotated[
    timedelta,
    Form(
        lambda value: round(value.total_seconds() * 1000),
        lambda content: timedelta(milliseconds=content),
        {"type": "integer"},
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that a job keeps, or a savepoint.

    The manifest in its folder has more: the flow, its schemas and the files.

    Attributes:
        id: `chk-17`, or the name of a savepoint's folder.
        run: The lineage it was taken in.
        batch: The batch it was taken after.
        completed_at: When that batch was committed.
        took: How long it took to keep it, or to copy a savepoint, beside the running job; None
            if an older release took it.
        duration: How long that batch took, with the wait for its records.
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
    pinned: bool = False
    folder: Location
    problems: tuple[_Problem, ...] = ()
    rows: Mapping[str, int] | None = None
    batch: int
    completed_at: Moment
    took: _Milliseconds | None = field(default=None, metadata=alias("took_ms"))
    duration: _Milliseconds = field(default=timedelta(0), metadata=alias("duration_ms"))
    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    watermark: Moment | None = None
    state: Mapping[str, StateFacts] = field(default_factory=dict)
    full_bytes: int = 0
    new_bytes: int = 0
    parallelism: int = 1
    files: int = 0

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
        return _source(self)

    __get_pydantic_core_schema__ = shaped(computed={"status": "status", "restore_from": "source"})


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
    pinned: bool = False
    folder: Location
    problems: tuple[_Problem, ...] = ()
    rows: Mapping[str, int] | None = None

    @property
    def status(self) -> str:
        """COMPLETED, or DAMAGED if a file is not as it was written."""
        return DAMAGED if self.problems else COMPLETED

    @property
    def source(self) -> str:
        """What names this checkpoint and no other of its job."""
        return _source(self)

    __get_pydantic_core_schema__ = shaped(computed={"status": "status", "restore_from": "source"})


AnyCheckpoint: TypeAlias = Checkpoint | UnreadableCheckpoint


def _source(checkpoint: AnyCheckpoint) -> str:
    of_run = checkpoint.kind == Kind.CHECKPOINT and checkpoint.run is not None
    return f"{checkpoint.run}/{checkpoint.id}" if of_run else checkpoint.id


def describe_checkpoint(
    folder: Location, manifest: Manifest, *, pinned: bool = False
) -> Checkpoint:
    """Return the checkpoint that a folder with a manifest is."""
    facts = manifest.facts
    return Checkpoint(
        id=manifest.id if manifest.kind is Kind.CHECKPOINT else folder.name,
        kind=manifest.kind,
        run=facts.lineage,
        # So that `restore --from` finds it from any working directory.
        folder=folder.absolute(),
        batch=manifest.batch,
        completed_at=facts.completed_at,
        took=manifest.took,
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


def by_age(checkpoint: AnyCheckpoint) -> tuple[bool, float, str]:
    """Return the place of a checkpoint in a list, oldest first; undated entries sort first."""
    if isinstance(checkpoint, UnreadableCheckpoint):
        return False, 0.0, checkpoint.id
    return True, checkpoint.completed_at.timestamp(), checkpoint.id
