"""Savepoints: self-contained folders that can be moved, and survive the job's own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from headgate.checkpoints import manifest as manifests
from headgate.checkpoints.catalog import describe, read_kept, read_manifest
from headgate.checkpoints.checkpoint import Checkpoint, describe_checkpoint
from headgate.checkpoints.manifest import FILE_NAMES, CheckpointFacts, Kind, Manifest
from headgate.checkpoints.problems import refuse
from headgate.checkpoints.sparklog import files_of
from headgate.checkpoints.storage import link_files, publishing
from headgate.checkpoints.verify import check as check_files
from headgate.checkpoints.verify import verify_batch
from headgate.errors import HeadgateError


def _never() -> bool:
    return False


def create(
    checkpoint: Path,
    batch: int,
    to: Path,
    facts: CheckpointFacts,
    *,
    is_abandoned: Callable[[], bool] = _never,
) -> Checkpoint:
    """Copy a committed batch into a self-contained folder.

    Every file is copied, checked against Spark's checksum and summed; the folder appears complete,
    on disk, or not at all.

    Args:
        checkpoint: Spark's folder, or that of a retained checkpoint.
        to: Must not exist.
        is_abandoned: Asked between two files and between two stages; the folder does not appear
            once it says so.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED, CHECKPOINT_EXISTS or
            CHECKPOINT_NOT_WRITTEN; SAVEPOINT_NOT_TAKEN if it was abandoned.
    """
    files = files_of(checkpoint, batch)
    with publishing(to, sync=True) as draft:
        link_files(checkpoint, _until_abandoned(files, facts.job, is_abandoned), draft, copy=True)
        problems = verify_batch(draft, batch)
        if problems:
            raise refuse(
                f"cannot take a savepoint of job {facts.job!r} at batch {batch}",
                problems,
                checkpoint,
                hint=f"headgate verify {facts.job}",
            )
        _check_wanted(facts.job, is_abandoned)
        found = describe(draft, files, before={}, thorough=True)
        _check_wanted(facts.job, is_abandoned)
        size = sum(each.size for each in found.values())
        manifest = Manifest(
            kind=Kind.SAVEPOINT,
            batch=batch,
            facts=facts,
            full_bytes=size,
            new_bytes=size,
            files=found,
        )
        (draft / FILE_NAMES[Kind.SAVEPOINT]).write_text(
            manifests.render(manifest), encoding="utf-8"
        )
    return describe_checkpoint(to, manifest)


def create_from(
    kept: Checkpoint, to: Path, *, is_abandoned: Callable[[], bool] = _never
) -> Checkpoint:
    """Copy a retained checkpoint into a self-contained folder.

    Args:
        is_abandoned: As `create` takes it.

    Raises:
        HeadgateError: As `create`; a checkpoint that has changed is refused.
    """
    facts = read_manifest(kept.folder).facts
    what = f"cannot take a savepoint of job {facts.job!r} from {kept.id}"
    check_files(kept.folder, what=what, hint=f"headgate checkpoints {facts.job}")
    return create(kept.folder, kept.batch, to, facts, is_abandoned=is_abandoned)


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


def read(folder: Path) -> Checkpoint:
    """Return the savepoint in a folder; its files are not checked.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it is not a savepoint, CHECKPOINT_DAMAGED if its
            manifest is corrupted.
    """
    found = read_kept(folder)
    if found.kind is not Kind.SAVEPOINT:
        raise HeadgateError(
            "CHECKPOINT_NOT_FOUND",
            f"cannot read a savepoint in {folder}: it is a retained checkpoint of a job",
            hint=f"headgate savepoint {read_manifest(folder).facts.job}",
        )
    return found


def check(folder: Path, *, quick: bool = False) -> Checkpoint:
    """Return the savepoint in a folder after checking every file.

    Raises:
        HeadgateError: As `read`, and CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED.
    """
    found = read(folder)
    what = f"cannot use savepoint {folder.name}"
    check_files(folder, what=what, hint=f"headgate verify {folder}", quick=quick)
    return found
