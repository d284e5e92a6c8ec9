"""The history of a job's checkpoints, with failed and removed ones: read from its events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from headgate.checkpoints.catalog import list_names
from headgate.jobs.event_files import EVENTS, count_events
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.views.events import JobEvent, read_back

DEFAULT_LIMIT = 1000
COMPLETED = "COMPLETED"
FAILED = "FAILED"
_KINDS = {
    "CHECKPOINT": ("checkpoint", COMPLETED),
    "CHECKPOINT_FAILED": ("checkpoint", FAILED),
    "SAVEPOINT": ("savepoint", COMPLETED),
    "SAVEPOINT_FAILED": ("savepoint", FAILED),
    "RESTORED": ("restore", COMPLETED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEvent:
    """A checkpoint or savepoint that was taken, failed, or restored.

    Attributes:
        number: The number of the event.
        id: Empty for a failure.
        kind: `checkpoint`, `savepoint`, or `restore` if the job went back to it.
        status: COMPLETED or FAILED.
        took: As of the checkpoint itself; None if the event does not say.
        full_bytes: The size of all its files.
        new_bytes: The size of the files that the checkpoint before it does not have.
        run: The lineage it was taken in; None in events of older releases.
        kept: Whether it still exists.
        reason: Why it failed.
    """

    number: int
    id: str
    kind: str
    status: str
    at: datetime
    took: timedelta | None
    full_bytes: int | None
    new_bytes: int | None
    run: str | None
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHistory:
    """The checkpoints of a job over time, newest first.

    Attributes:
        entries: Checkpoints and savepoints, without restores.
        total: The number of entries on all pages.
        completed: Checkpoints that were taken, also removed ones.
        failed: Checkpoints and savepoints that could not be taken.
        latest: The newest entry of each kind: `completed`, `failed`, `savepoint`, `restore`.
    """

    job: str
    entries: tuple[CheckpointEvent, ...]
    total: int
    completed: int
    failed: int
    savepoints: int
    restores: int
    latest: dict[str, CheckpointEvent]


def list_checkpoint_history(
    home: JobFolder, *, limit: int = DEFAULT_LIMIT, offset: int = 0
) -> CheckpointHistory:
    """Return the checkpoints of a job over time, newest first.

    Args:
        limit: The maximum number of entries.
        offset: The number of newest entries to skip.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    kinds = counts.kinds
    totals = {
        "completed": kinds["CHECKPOINT"],
        "failed": kinds["CHECKPOINT_FAILED"] + kinds["SAVEPOINT_FAILED"],
        "savepoint": kinds["SAVEPOINT"],
        "restore": kinds["RESTORED"],
    }
    wanted = {name for name, count in totals.items() if count}
    total = sum(totals.values()) - totals["restore"]
    entries: list[CheckpointEvent] = []
    latest: dict[str, CheckpointEvent] = {}
    existing, seen = _Existing(home), 0
    for event in read_back(file, counts, kinds=_KINDS):
        entry = _entry(event, existing)
        group = "completed" if entry.kind == "checkpoint" else entry.kind
        latest.setdefault("failed" if entry.status == FAILED else group, entry)
        if entry.kind != "restore":
            seen += 1
            if seen > offset and len(entries) < limit:
                entries.append(entry)
        # The rest of a long history is not read.
        if (len(entries) >= limit or seen >= total) and wanted <= latest.keys():
            break
    return CheckpointHistory(
        job=home.name,
        entries=tuple(entries),
        total=total,
        completed=totals["completed"],
        failed=totals["failed"],
        savepoints=totals["savepoint"],
        restores=totals["restore"],
        latest=latest,
    )


class _Existing:
    """The names of the checkpoints and savepoints that still exist."""

    def __init__(self, home: JobFolder) -> None:
        self._runs = {
            run: set(list_names(home.checkpoints_folder(run)))
            for run in list_names(home.path / "runs")
        }
        self._savepoints = set(list_names(home.savepoints_folder))
        self._claimed: set[tuple[str, str]] = set()

    def has(self, checkpoint: str, run: str | None) -> bool:
        """Tell whether a checkpoint exists; one without a run is the newest of its id."""
        if run is not None:
            self._claimed.add((run, checkpoint))
            return checkpoint in self._runs.get(run, ())
        for name in sorted(self._runs, reverse=True):
            if checkpoint in self._runs[name] and (name, checkpoint) not in self._claimed:
                self._claimed.add((name, checkpoint))
                return True
        return False

    def has_savepoint(self, name: str, folder: str) -> bool:
        """Tell whether a savepoint exists, in the job's folder or in the user's."""
        return name in self._savepoints or (bool(folder) and Path(folder).is_dir())


def _entry(event: JobEvent, existing: _Existing) -> CheckpointEvent:
    kind, status = _KINDS[event.kind]
    facts = event.facts
    lineage = facts.get("run") or facts.get("lineage")
    run = None if lineage is None else str(lineage)
    plan = facts.get("restore") or {}
    restored = plan.get("checkpoint")
    if plan.get("run"):
        # That of the checkpoint, not the run that began with it.
        run = str(plan["run"])
    id_ = str(restored or facts.get("checkpoint") or facts.get("savepoint") or "")
    match event.kind:
        case "CHECKPOINT":
            kept = existing.has(id_, run)
        case "SAVEPOINT":
            kept = existing.has_savepoint(id_, str(facts.get("folder") or ""))
        case _:
            kept = False
    took = facts.get("took_ms")
    return CheckpointEvent(
        number=event.number,
        id=id_,
        kind=kind,
        status=status,
        at=event.at,
        took=None if took is None else timedelta(milliseconds=took),
        full_bytes=facts.get("full_bytes") or facts.get("bytes"),
        new_bytes=facts.get("new_bytes"),
        run=run,
        kept=kept,
        reason=str(facts.get("message") or ""),
    )
