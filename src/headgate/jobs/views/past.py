"""A job's past: what it can go back to, and the restores that did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from headgate.checkpoints.catalog import list_names
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.jobs.checkpoints.listing import read_past
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import read_manifest

# More checkpoints than these cannot be told apart on a line.
MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRestore:
    """A run that began with a restore.

    Attributes:
        run: The lineage that began.
        checkpoint: The id of the checkpoint that was restored.
        of: The lineage in which that checkpoint was taken.
    """

    run: str
    at: datetime
    checkpoint: str
    of: str


@dataclass(frozen=True, slots=True)
class Past:
    """What a job can go back to, and its restores; both oldest first.

    Attributes:
        left_off: How many older checkpoints there are beside.
    """

    checkpoints: tuple[Checkpoint, ...]
    restores: tuple[PastRestore, ...]
    left_off: int = 0

    def find_at(self, at: datetime) -> Checkpoint | None:
        """Return what a restore to a moment takes: the newest that was complete by then."""
        before = [checkpoint for checkpoint in self.checkpoints if checkpoint.completed_at <= at]
        return before[-1] if before else None


def view_past(home: JobFolder, *, most: int = MOST) -> Past:
    """Return what a job can go back to, and its restores; the job may be running.

    Checkpoints of a run that was left behind by a restore are not among them: they are of a past
    that the present run does not have.

    Args:
        most: Of more checkpoints than these only the newest are read; savepoints are all there.
    """
    checkpoints, left_off = read_past(home, most=most)
    return Past(tuple(checkpoints), _list_restores(home), left_off)


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
