"""Every checkpoint a job ever took, failed ones and those that were removed since: its events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.checkpoints.catalog import list_names
from headgate.jobs.event_files import EVENTS, EventCounts, count_events
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
    """An event of a job's history: a checkpoint or savepoint was taken or failed, or restored.

    It outlives the checkpoint, which retention may have removed since.

    Attributes:
        number: The number of the event.
        id: Empty for one that failed.
        kind: `checkpoint`, `savepoint`, or `restore` for a moment at which the job went back.
        status: COMPLETED or FAILED.
        took: How long it took to keep; None where that was not told.
        full_bytes: Of all its files.
        new_bytes: Of the files that the one before did not have.
        run: The lineage it is of; None in events of releases that did not tell.
        kept: Whether it is still there.
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
    """What a job kept over time, newest first.

    Attributes:
        entries: Checkpoints and savepoints; restores are not among them.
        total: How many entries there are on all pages.
        completed: Checkpoints that were kept, whether they are still there or not.
        failed: Checkpoints and savepoints that could not be taken.
        latest: The newest of each kind that the events tell of: `completed`, `failed`,
            `savepoint`, `restore`.
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
    """Return what a job kept over time, newest first.

    Args:
        limit: How many entries at most.
        offset: How many of the newest to pass over.
    """
    file = home.path / EVENTS
    counts = count_events(file)
    kinds = counts.kinds
    failed = kinds["CHECKPOINT_FAILED"] + kinds["SAVEPOINT_FAILED"]
    total = kinds["CHECKPOINT"] + kinds["SAVEPOINT"] + failed
    found = _Reading(counts, offset, limit)
    there = _There(home)
    for event in read_back(file, counts, kinds=_KINDS):
        if found.is_complete:
            break
        found.take(_entry(event, there))
    return CheckpointHistory(
        job=home.name,
        entries=tuple(found.entries),
        total=total,
        completed=kinds["CHECKPOINT"],
        failed=failed,
        savepoints=kinds["SAVEPOINT"],
        restores=kinds["RESTORED"],
        latest=found.latest,
    )


class _Reading:
    """Takes events, newest first, until all that was asked for is there."""

    def __init__(self, counts: EventCounts, offset: int, limit: int) -> None:
        self._skip = offset
        self._limit = limit
        kinds = counts.kinds
        self._wanted = {
            "completed": kinds["CHECKPOINT"],
            "failed": kinds["CHECKPOINT_FAILED"] + kinds["SAVEPOINT_FAILED"],
            "savepoint": kinds["SAVEPOINT"],
            "restore": kinds["RESTORED"],
        }
        self._left = self._wanted["completed"] + self._wanted["failed"] + kinds["SAVEPOINT"]
        self.entries: list[CheckpointEvent] = []
        self.latest: dict[str, CheckpointEvent] = {}

    @property
    def is_complete(self) -> bool:
        """Whether no further event is needed."""
        full = len(self.entries) >= self._limit or self._left <= 0
        return full and all(name in self.latest for name, count in self._wanted.items() if count)

    def take(self, entry: CheckpointEvent) -> None:
        """Take note of an entry."""
        names = {"checkpoint": "completed", "savepoint": "savepoint", "restore": "restore"}
        name = "failed" if entry.status == FAILED else names[entry.kind]
        self.latest.setdefault(name, entry)
        if entry.kind == "restore":
            return
        self._left -= 1
        if self._skip > 0:
            self._skip -= 1
        elif len(self.entries) < self._limit:
            self.entries.append(entry)


class _There:
    """Which checkpoints and savepoints are still there, by their folders' names."""

    def __init__(self, home: JobFolder) -> None:
        self._runs = {
            run: set(list_names(home.checkpoints_folder(run)))
            for run in list_names(home.path / "runs")
        }
        self._savepoints = set(list_names(home.savepoints_folder))
        self._claimed: set[tuple[str, str]] = set()

    def has(self, checkpoint: str, run: str | None) -> bool:
        """Tell whether a checkpoint is there; of those without a run the newest of its id is."""
        if run is not None:
            self._claimed.add((run, checkpoint))
            return checkpoint in self._runs.get(run, ())
        for each in sorted(self._runs, reverse=True):
            if checkpoint in self._runs[each] and (each, checkpoint) not in self._claimed:
                self._claimed.add((each, checkpoint))
                return True
        return False

    def has_savepoint(self, name: str, folder: str) -> bool:
        """Tell whether a savepoint is there, in the job's folder or where the user put it."""
        return name in self._savepoints or (bool(folder) and Path(folder).is_dir())


def _entry(event: JobEvent, there: _There) -> CheckpointEvent:
    kind, status = _KINDS[event.kind]
    told = event.facts
    run = told.get("run") or told.get("lineage")
    return CheckpointEvent(
        number=event.number,
        id=_id(event),
        kind=kind,
        status=status,
        at=event.at,
        took=None if told.get("took_ms") is None else timedelta(milliseconds=told["took_ms"]),
        full_bytes=told.get("full_bytes") or told.get("bytes"),
        new_bytes=told.get("new_bytes"),
        run=None if run is None else str(run),
        kept=_is_kept(event, there, run),
        reason=str(told.get("message") or ""),
    )


def _id(event: JobEvent) -> str:
    told = event.facts
    if event.kind == "RESTORED":
        return str((told.get("restore") or {}).get("checkpoint") or "")
    return str(told.get("checkpoint") or told.get("savepoint") or "")


def _is_kept(event: JobEvent, there: _There, run: Any) -> bool:
    told = event.facts
    match event.kind:
        case "CHECKPOINT":
            return there.has(str(told.get("checkpoint")), None if run is None else str(run))
        case "SAVEPOINT":
            return there.has_savepoint(str(told.get("savepoint")), str(told.get("folder") or ""))
    return False
