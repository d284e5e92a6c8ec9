"""Savepoints: self-contained folders that can be moved, and survive the job's own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from headgate._clock import Clock, Stopwatch, SystemClock
from headgate._locations import Location
from headgate.checkpoints.catalog import describe, read_manifest, write_manifest
from headgate.checkpoints.checkpoint import Checkpoint, describe_checkpoint
from headgate.checkpoints.manifest import CheckpointFacts, Kind
from headgate.checkpoints.problems import refuse
from headgate.checkpoints.sparklog import files_in
from headgate.checkpoints.stores import files_at, is_kept_on_store, place_at
from headgate.checkpoints.verify import check, verify_files
from headgate.errors import HeadgateError


def create(
    checkpoint: Location,
    batch: int,
    to: Location,
    facts: CheckpointFacts,
    *,
    is_abandoned: Callable[[], bool] = lambda: False,
    clock: Clock | None = None,
) -> Checkpoint:
    """Copy a committed batch into a self-contained folder.

    Every file is copied, checked against Spark's checksum and summed; the folder appears complete,
    on disk, or not at all.

    Args:
        checkpoint: Spark's folder, or that of a retained checkpoint.
        to: Must not exist.
        is_abandoned: Asked between two files and between two stages; the folder does not appear
            once it says so.
        clock: Measures how long it takes.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED, CHECKPOINT_EXISTS or
            CHECKPOINT_NOT_WRITTEN; SAVEPOINT_NOT_TAKEN if it was abandoned.
    """
    watch = Stopwatch(clock or SystemClock())
    check_place(to, job=facts.job)
    source = files_at(checkpoint)
    files = files_in(source, batch)
    with place_at(to).publishing(linked=False, sync=True) as draft:
        draft.bring(source, _until_abandoned(files, facts.job, is_abandoned))
        copied = draft.files
        problems = verify_files(copied, batch)
        if problems:
            raise refuse(
                f"cannot take a savepoint of job {facts.job!r} at batch {batch}",
                problems,
                checkpoint,
                hint=f"headgate verify {facts.job}",
            )
        _check_wanted(facts.job, is_abandoned)
        described = describe(copied, files, before={}, thorough=True)
        _check_wanted(facts.job, is_abandoned)
        manifest = write_manifest(
            draft, Kind.SAVEPOINT, batch, facts, described, took=watch.elapsed()
        )
    return describe_checkpoint(to, manifest)


def create_from(
    kept: Checkpoint,
    to: Location,
    *,
    is_abandoned: Callable[[], bool] = lambda: False,
    clock: Clock | None = None,
) -> Checkpoint:
    """Copy a retained checkpoint into a self-contained folder.

    Args:
        is_abandoned: As `create` takes it.
        clock: Likewise.

    Raises:
        HeadgateError: As `create`; a checkpoint that has changed is refused.
    """
    facts = read_manifest(kept.folder).facts
    what = f"cannot take a savepoint of job {facts.job!r} from {kept.id}"
    check(kept.folder, what=what, hint=f"headgate checkpoints {facts.job}")
    return create(kept.folder, kept.batch, to, facts, is_abandoned=is_abandoned, clock=clock)


def check_place(to: Location, *, job: str) -> None:
    """Refuse a place for a savepoint that is one of a kept checkpoint on a store.

    Raises:
        HeadgateError: BAD_STORE.
    """
    if is_kept_on_store(to):
        raise HeadgateError(
            "BAD_STORE",
            f"cannot take a savepoint of job {job!r} in {to}: {to.name} in a folder "
            f"{to.parent.name!r} is the name of a kept checkpoint",
            hint=f"choose another name, such as {to.parent.parent}/savepoints/before-upgrade",
        )


def _until_abandoned(
    files: Iterable[str], job: str, is_abandoned: Callable[[], bool]
) -> Iterator[str]:
    for file in files:
        _check_wanted(job, is_abandoned)
        yield file


def _check_wanted(job: str, is_abandoned: Callable[[], bool]) -> None:
    if is_abandoned():
        raise HeadgateError(
            "SAVEPOINT_NOT_TAKEN",
            f"cannot take a savepoint of job {job!r}: the job was canceled meanwhile",
            hint=f"headgate checkpoints {job}",
        )
