"""The checkpoints and savepoints of a job: listed, looked up, pinned and verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from headgate._locations import Location, is_local, parse_location
from headgate.checkpoints.catalog import (
    find_batch,
    list_all,
    list_kept,
    list_names,
    pin,
    read_kept,
    read_manifest,
    unpin,
)
from headgate.checkpoints.checkpoint import (
    AnyCheckpoint,
    Checkpoint,
    UnreadableCheckpoint,
    by_age,
)
from headgate.checkpoints.manifest import Kind
from headgate.checkpoints.verify import verify
from headgate.errors import HeadgateError, StoreError
from headgate.flow.names import did_you_mean
from headgate.jobs.checkpoints.portable import is_portable, read_portable
from headgate.jobs.checkpoints.state_check import open_state
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.registry import get_job
from headgate.jobs.runs.lineage import find_present, walk_lineage
from headgate.jobs.values import LATEST


def list_checkpoints(home: JobFolder, *, every_run: bool = False) -> list[AnyCheckpoint]:
    """Return the checkpoints of a job's present run and its savepoints, oldest first.

    Args:
        every_run: Those of the runs before, too.
    """
    present = home.find_present_run() or (home.find_json("status.json") or {}).get("lineage")
    lineages = list_names(home.path / "runs") if every_run else [present] if present else []
    listed: list[AnyCheckpoint] = []
    for lineage in lineages:
        listed += _list_folder(home.checkpoints_folder(lineage), Kind.CHECKPOINT, lineage)
    listed += _list_folder(home.savepoints_folder, Kind.SAVEPOINT, None)
    return sorted(listed, key=by_age)


def list_past(home: JobFolder) -> list[Checkpoint]:
    """Return what a job can go back to, oldest first: savepoints, and the present run's past.

    The past of a run that was restored is that of the run it comes from, up to that checkpoint.
    """
    return read_past(home)[0]


def list_readable_past(home: JobFolder) -> list[Checkpoint]:
    """Return what a job can go back to whose state this release reads, oldest first."""
    past = list_past(home)
    return [one for one in past if read_manifest(one.folder).facts.has_known_state]


def read_past(home: JobFolder, *, most: int | None = None) -> tuple[list[Checkpoint], int]:
    """Return what a job can go back to, and how many older checkpoints were not read.

    Args:
        most: Of more checkpoints than these only the newest are read; savepoints are all there.
    """
    savepoints = list_kept(home.savepoints_folder)
    past: list[Checkpoint] = []
    unread: list[tuple[Location, int | None]] = []
    # Batches of a run that took its state by uid are counted from 0 again.
    for ancestor in walk_lineage(home, home.find_present_run()):
        kept, last = home.checkpoints_folder(ancestor.lineage), ancestor.last_batch
        numbered = [
            (-1 if batch is None else batch, kept / name)
            for name in list_names(kept)
            if (batch := find_batch(name)) is None or last is None or batch <= last
        ]
        unread += [(folder, last) for _, folder in sorted(numbered, reverse=True)]
        past += [
            savepoint
            for savepoint in savepoints
            if savepoint.run == ancestor.lineage and (last is None or savepoint.batch <= last)
        ]
    for folder, last in unread[:most]:
        try:
            checkpoint = read_kept(folder)
        except StoreError:
            raise
        except HeadgateError:
            # Corrupted, or removed meanwhile: nothing to go back to.
            continue
        if last is None or checkpoint.batch <= last:
            past.append(checkpoint)
    left_off = 0 if most is None else max(0, len(unread) - most)
    # Of one batch the savepoint comes last: a restore takes the last one that fits.
    return sorted(past, key=lambda one: (one.completed_at, one.batch, one.kind)), left_off


def get_checkpoint(home: JobFolder, checkpoint: str, *, quick: bool = True) -> AnyCheckpoint:
    """Return one checkpoint as `choose_checkpoint` does, with the problems of its files.

    Args:
        quick: Look at names and sizes, and read small files only.
    """
    return _verified(choose_checkpoint(home, checkpoint), quick=quick)


def choose_checkpoint(home: JobFolder, checkpoint: str) -> AnyCheckpoint:
    """Return one checkpoint by its id.

    If several have the same id, the present run's comes first, then the newest of any other.

    Args:
        checkpoint: `chk-17`, `17`, `LINEAGE/chk-17` of an earlier run, a savepoint's name, or
            `latest`.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND with those there are.
    """
    run, slash, id_ = checkpoint.rpartition("/")
    if slash:
        return _choose_of_run(home, run, f"chk-{id_}" if id_.isdigit() else id_)
    wanted = f"chk-{checkpoint}" if checkpoint.isdigit() else checkpoint
    named = _find_named(home, wanted)
    if named is not None:
        return named
    for every_run in (False, True):
        for candidate in reversed(list_checkpoints(home, every_run=every_run)):
            if candidate.id == wanted or wanted == LATEST:
                return candidate
    raise checkpoint_not_found(checkpoint, list_checkpoints(home), home.name)


def _choose_of_run(home: JobFolder, run: str, wanted: str) -> AnyCheckpoint:
    # A run's name is compared, and never taken for a path.
    known = [one for one in list_checkpoints(home, every_run=True) if one.run == run]
    for candidate in known:
        if candidate.id == wanted:
            return candidate
    raise checkpoint_not_found(f"{run}/{wanted}", known or list_checkpoints(home), home.name)


def checkpoint_not_found(wanted: str, known: Sequence[AnyCheckpoint], job: str) -> HeadgateError:
    """Return the error for an id that no checkpoint of a job has.

    Args:
        known: The checkpoints that the job has, oldest first.
    """
    ids = [checkpoint.id for checkpoint in reversed(known)]
    return HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot find checkpoint {wanted!r} of job {job!r}: "
        + (f"it has {', '.join(ids)}" if ids else "it has none yet"),
        hint=did_you_mean(wanted, ids) if ids else f"headgate checkpoints {job}",
    )


def pin_checkpoint(home: JobFolder, checkpoint: str, *, pinned: bool) -> AnyCheckpoint:
    """Make a checkpoint stay whatever is retained, or let it go when its time comes."""
    chosen = get_checkpoint(home, checkpoint)
    # One that cannot be read is refused.
    folder = read_kept(chosen.folder).folder
    if pinned:
        pin(folder, job=home.name)
    else:
        unpin(folder)
    return get_checkpoint(home, chosen.source)


def verify_anything(root: Path, subject: str, *, open_newest: bool = True) -> list[AnyCheckpoint]:
    """Return what a job's name or a path stands for, every file checked.

    Of a job these are the checkpoints of its present run, its savepoints, and what Spark itself
    works on, under the name `present`. A path is a checkpoint, a savepoint or a folder of Spark's.
    A job's name comes first; `./NAME` is always a path.

    Args:
        open_newest: Have Spark open the state of the newest one that is whole, and count its rows.

    Raises:
        HeadgateError: JOB_NOT_FOUND if it is neither.
    """
    folder = parse_location(subject)
    is_job = (root / "jobs" / subject).is_dir() and "/" not in subject
    if not is_job and (not is_local(folder) or folder.is_dir()):
        if is_portable(folder):
            return [read_portable(folder)]
        verified = [_verify_folder(folder, folder.name, run=None)]
    else:
        verified = _verify_job(get_job(root, subject, verb="verify"))
    return _with_state(verified) if open_newest else verified


def _with_state(verified: list[AnyCheckpoint]) -> list[AnyCheckpoint]:
    """Return the checkpoints with the rows of the newest one whose state can be opened."""
    for place, one in reversed(list(enumerate(verified))):
        if isinstance(one, UnreadableCheckpoint) or one.problems:
            continue
        if read_manifest(one.folder).facts.has_known_state:
            rows, problems = open_state(one)
            opened = replace(one, problems=tuple(problems), rows=rows)
            return [*verified[:place], opened, *verified[place + 1 :]]
    return verified


def _verify_job(home: JobFolder) -> list[AnyCheckpoint]:
    verified = [_verified(one, quick=False) for one in list_checkpoints(home)]
    run = find_present(home)
    if run is not None and (run.checkpoint / "commits").is_dir():
        verified.append(_verify_folder(run.checkpoint, "present", run=run.lineage))
    return verified


def _verify_folder(folder: Location, name: str, *, run: str | None) -> AnyCheckpoint:
    problems = tuple(verify(folder))
    try:
        return replace(read_kept(folder), problems=problems)
    except StoreError:
        raise
    except HeadgateError:
        return UnreadableCheckpoint(
            id=name, kind="folder", run=run, folder=folder, problems=problems
        )


def _list_folder(folder: Location, kind: Kind, lineage: str | None) -> Iterable[AnyCheckpoint]:
    kept, unreadable = list_all(folder)
    yield from kept
    for problem in unreadable:
        yield UnreadableCheckpoint(
            id=problem.file,
            kind=kind.value,
            run=lineage,
            folder=(folder / problem.file).absolute(),
            problems=(problem,),
        )


def _find_named(home: JobFolder, wanted: str) -> Checkpoint | None:
    """Return the present run's checkpoint of a name by its folder, where nothing else is meant."""
    present = home.find_present_run()
    is_number = wanted.removeprefix("chk-").isdigit()
    if present is None or not is_number or (home.savepoints_folder / wanted).exists():
        return None
    try:
        return read_kept(home.checkpoints_folder(present) / wanted)
    except StoreError:
        raise
    except HeadgateError:
        return None


def _verified(checkpoint: AnyCheckpoint, *, quick: bool) -> AnyCheckpoint:
    if isinstance(checkpoint, UnreadableCheckpoint):
        return checkpoint
    return replace(checkpoint, problems=tuple(verify(checkpoint.folder, quick=quick)))
