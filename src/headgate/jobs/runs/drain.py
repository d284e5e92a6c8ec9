"""Drained jobs: their event time has ended, so all later events are late."""

from __future__ import annotations

from collections.abc import Sequence

from headgate._locations import Location
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.sparklog import find_last_commit, find_open_batch, read_offsets
from headgate.engine.plan.clocks import is_drained
from headgate.errors import HeadgateError, StoreError


def check_not_drained(checkpoint: Location, past: Sequence[Checkpoint], *, job: str) -> None:
    """Refuse to resume a run that was drained, or was on its way there.

    Args:
        checkpoint: Spark's folder of the run.
        past: What the job can be restored from, oldest first.

    Raises:
        HeadgateError: JOB_DRAINED.
    """
    # The end of time stands in a batch that was begun, even where its drain was cut short.
    last, begun = find_last_commit(checkpoint), find_open_batch(checkpoint)
    if begun is not None and is_drained(read_offsets(checkpoint, begun)):
        what = f"cannot resume job {job!r}: its drain was cut short, and some windows may have no "
        raise _drained(what + "final row; it was", past, job=job)
    if last is not None and is_drained(read_offsets(checkpoint, last)):
        raise _drained(f"cannot resume job {job!r}: it was", past, job=job)


def has_begun_drain(checkpoint: Location) -> bool:
    """Return whether a run has ended event time, in a batch that has committed or is open.

    Args:
        checkpoint: Spark's folder of the run.
    """
    try:
        numbers = (find_last_commit(checkpoint), find_open_batch(checkpoint))
        return any(
            is_drained(read_offsets(checkpoint, number)) for number in numbers if number is not None
        )
    except StoreError:
        raise
    except HeadgateError:
        # Spark fails on a corrupted batch when it repeats it, and explains more.
        return False


def check_not_drained_at(
    kept: Checkpoint, past: Sequence[Checkpoint], *, job: str, ended: bool = False
) -> None:
    """Refuse to restore from a checkpoint that a drain left.

    Args:
        ended: Whether it is known to be one, other than by Spark's logs.

    Raises:
        HeadgateError: JOB_DRAINED.
    """
    if ended or _is_drained(kept):
        raise _drained(f"cannot restore job {job!r} from {kept.id}: it was", past, job=job)


def _drained(what: str, past: Sequence[Checkpoint], *, job: str) -> HeadgateError:
    before = next(
        (checkpoint.id for checkpoint in reversed(past) if not _is_drained(checkpoint)), None
    )
    fresh = "start empty with --fresh"
    return HeadgateError(
        "JOB_DRAINED",
        f"{what} drained (--drain), which ended event time, so all further events are late",
        hint=fresh if before is None else f"headgate restore {job} --from {before}, or {fresh}",
    )


def _is_drained(kept: Checkpoint) -> bool:
    try:
        return is_drained(read_offsets(kept.folder, kept.batch))
    except StoreError:
        raise
    except HeadgateError:
        # A portable savepoint has no logs; a corrupted checkpoint is refused elsewhere.
        return False
