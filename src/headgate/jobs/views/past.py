"""A job's past: the checkpoints it can go back to, and its restores."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate.checkpoints.catalog import list_kept, list_names
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import Kind
from headgate.jobs.checkpoints.listing import read_past
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import read_manifest

# More checkpoints are not legible on the timeline.
MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRestore:
    """A restore.

    Attributes:
        run: The lineage that began with it.
        checkpoint: The id of the restored checkpoint.
        of: The lineage in which that checkpoint was taken.
    """

    run: str
    at: datetime
    checkpoint: str
    of: str


@dataclass(frozen=True, slots=True)
class Past:
    """The checkpoints that a job can go back to, and its restores; both oldest first.

    Attributes:
        left_off: The number of older checkpoints.
        left_behind: Savepoints of runs that a restore left, and of later batches than it took. A
            restore takes one of them by its name, and never by a moment.
    """

    checkpoints: tuple[Checkpoint, ...]
    restores: tuple[PastRestore, ...]
    left_off: int = 0
    left_behind: tuple[Checkpoint, ...] = ()

    def find_at(self, at: datetime) -> Checkpoint | None:
        """Return the checkpoint of a restore to a moment: the newest completed by then."""
        before = [checkpoint for checkpoint in self.checkpoints if checkpoint.completed_at <= at]
        return before[-1] if before else None


def view_past(home: JobFolder, *, most: int = MOST) -> Past:
    """Return the checkpoints that a job can go back to, and its restores.

    Checkpoints that a restore left behind are not part of the present run's past; savepoints are
    kept beside it.

    Args:
        most: The maximum number of checkpoints; savepoints are always included.
    """
    checkpoints, left_off = read_past(home, most=most)
    names = {one.id for one in checkpoints if one.kind is Kind.SAVEPOINT}
    left_behind = [one for one in list_kept(home.savepoints_folder) if one.id not in names]
    return Past(tuple(checkpoints), _list_restores(home), left_off, tuple(left_behind))


def _list_restores(home: JobFolder) -> tuple[PastRestore, ...]:
    restores = []
    for lineage in list_names(home.path / "runs"):
        content = read_manifest(home.run_folder(lineage))
        origin = None if content is None else content.get("origin")
        if content is not None and origin:
            restores.append(
                PastRestore(
                    run=lineage,
                    at=datetime.fromisoformat(content["created"]),
                    checkpoint=str(origin["checkpoint"]),
                    of=str(origin["lineage"]),
                )
            )
    return tuple(sorted(restores, key=lambda restore: restore.at))
