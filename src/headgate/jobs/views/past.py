"""A job's past as a line of moments: what can be gone back to, and where it was done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.checkpoints.catalog import (
    Kept,
    Kind,
    find_batch,
    list_folders,
    list_kept,
    read_kept,
)
from headgate.errors import HeadgateError
from headgate.jobs.home import JobHome
from headgate.jobs.registry import get_home
from headgate.jobs.runs.lineage import find_run, read_manifest

# More moments than these cannot be told apart on a line.
MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMoment:
    """A checkpoint or savepoint that a restore to a moment may take.

    Attributes:
        source: What `restore --from` takes to mean this one and no other.
        run: The lineage it was taken in.
        bytes: Of all its files.
        records: Read of all sources since that run began.
    """

    id: str
    kind: str
    source: str
    run: str
    batch: int
    at: datetime
    bytes: int
    records: int
    pinned: bool

    def to_json(self) -> dict[str, Any]:
        """Return the moment as JSON values."""
        return {
            "id": self.id,
            "kind": self.kind,
            "from": self.source,
            "run": self.run,
            "batch": self.batch,
            "completed_at": self.at.isoformat(),
            "full_bytes": self.bytes,
            "records": self.records,
            "pinned": self.pinned,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRestore:
    """A run that began by going back.

    Attributes:
        run: The lineage that began.
        checkpoint: What it went back to.
        of: The lineage that was taken in.
    """

    run: str
    at: datetime
    checkpoint: str
    of: str

    def to_json(self) -> dict[str, Any]:
        """Return the restore as JSON values."""
        return {
            "run": self.run,
            "at": self.at.isoformat(),
            "checkpoint": self.checkpoint,
            "of_run": self.of,
        }


@dataclass(frozen=True, slots=True)
class Past:
    """What a job can go back to, and the times it did; both oldest first.

    Attributes:
        left_off: How many older checkpoints there are beside.
    """

    moments: tuple[PastMoment, ...]
    restores: tuple[PastRestore, ...]
    left_off: int = 0

    def find_at(self, at: datetime) -> PastMoment | None:
        """Return what a restore to a moment takes: the newest that was complete by then."""
        before = [each for each in self.moments if each.at <= at]
        return before[-1] if before else None

    def to_json(self) -> dict[str, Any]:
        """Return the past as JSON values."""
        return {
            "moments": [each.to_json() for each in self.moments],
            "restores": [each.to_json() for each in self.restores],
            "left_off": self.left_off,
        }


def view_past(root: Path, name: str, *, most: int = MOST) -> Past:
    """Return what a job can go back to by a moment, and its restores; running or not.

    Checkpoints of a run that was left behind by a restore are not among them: they are of a past
    that the present run does not have.

    Args:
        most: Of more checkpoints than these only the newest are read; savepoints are all there.
    """
    home = get_home(root, name, verb="show the past of")
    savepoints = [_moment(each) for each in list_kept(home.savepoints_folder)]
    found: list[PastMoment] = []
    folders: list[Path] = []
    for lineage, newest in _ancestry(home):
        folders += _checkpoints(home, lineage, newest)
        found += [
            each
            for each in savepoints
            if each.run == lineage and (newest is None or each.batch <= newest)
        ]
    found += _read(folders[:most])
    # Of one batch the savepoint comes last, as in what a restore looks through.
    ordered = sorted(found, key=lambda each: (each.at, each.batch, each.kind == Kind.SAVEPOINT))
    return Past(tuple(ordered), _restores(home), max(0, len(folders) - most))


def _ancestry(home: JobHome) -> list[tuple[str, int | None]]:
    """Return the present run and those it comes from, each with the last batch that counts."""
    found: list[tuple[str, int | None]] = []
    lineage, newest = home.find_present_run(), None
    while lineage is not None:
        found.append((lineage, newest))
        run = find_run(home, lineage)
        origin = None if run is None else run.origin
        lineage = None if origin is None else origin.lineage
        newest = None if origin is None else origin.batch
    return found


def _checkpoints(home: JobHome, lineage: str, newest: int | None) -> list[Path]:
    """Return the folders of a run's checkpoints, newest first; none of them is read."""
    numbered = (
        (batch, folder)
        for folder in list_folders(home.checkpoints_folder(lineage))
        if (batch := find_batch(folder)) is not None and (newest is None or batch <= newest)
    )
    return [folder for _, folder in sorted(numbered, reverse=True)]


def _read(folders: Iterable[Path]) -> Iterator[PastMoment]:
    for each in folders:
        try:
            yield _moment(read_kept(each))
        except HeadgateError:
            # Damaged, or removed meanwhile: nothing to go back to.
            continue


def _moment(kept: Kept) -> PastMoment:
    run = kept.manifest.facts.lineage
    return PastMoment(
        id=kept.id,
        kind=kept.kind.value,
        source=f"{run}/{kept.id}" if kept.kind is Kind.CHECKPOINT else kept.id,
        run=run,
        batch=kept.batch,
        at=kept.completed_at,
        bytes=kept.manifest.full_bytes,
        records=sum(each.records for each in kept.manifest.facts.sources.values()),
        pinned=kept.pinned,
    )


def _restores(home: JobHome) -> tuple[PastRestore, ...]:
    folder = home.path / "runs"
    found = []
    for run in sorted(folder.iterdir()) if folder.is_dir() else []:
        content = read_manifest(run)
        origin = None if content is None else content.get("origin")
        if content is not None and origin:
            found.append(
                PastRestore(
                    run=run.name,
                    at=datetime.fromisoformat(content["created"]),
                    checkpoint=str(origin["checkpoint"]),
                    of=str(origin["lineage"]),
                )
            )
    return tuple(sorted(found, key=lambda each: each.at))
