"""Deleting a job: its runs, checkpoints, savepoints, logs and settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from headgate._locations import Location, is_local
from headgate.checkpoints.catalog import is_held, list_names
from headgate.errors import HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.registry import get_job, list_job_names
from headgate.jobs.removal.remains import find_remains
from headgate.jobs.removal.sizes import measure
from headgate.jobs.runs.deletions import (
    SAVEPOINT_FOLDERS,
    find_outside,
    finish_deletions,
    list_outside,
    remove_aside,
    set_aside,
)
from headgate.jobs.runs.job_stores import held_stores
from headgate.jobs.runs.store_record import StoreRecord
from headgate.jobs.upkeep.kept_jobs import Session

_REST = "logs, events, measurements and settings"


@dataclass(frozen=True, slots=True)
class Removal:
    """Something that is removed.

    Attributes:
        what: Such as `run 20261115T120000-abcdef`.
        paths: Its files and folders.
        bytes: What removing it frees: files that something else has as well do not count.
    """

    what: str
    paths: tuple[Location, ...]
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What deleting a job removes, and what it leaves.

    Attributes:
        stays: What is not removed, a line each: topics, consumer groups, savepoints.
        dry_run: Whether nothing was done.
    """

    job: str
    removes: tuple[Removal, ...]
    stays: tuple[str, ...]
    bytes: int
    dry_run: bool = False


def preview_delete(home: JobFolder, *, keep_savepoints: bool = False) -> Deletion:
    """Return what deleting a job removes, without doing it.

    Raises:
        HeadgateError: JOB_RUNNING, JOB_BUSY or JOB_IN_USE, as the deletion itself.
    """
    check_deletable(home)
    return replace(_describe(home, keep_savepoints=keep_savepoints), dry_run=True)


def check_deletable(home: JobFolder) -> None:
    """Refuse a job that cannot be deleted now.

    Raises:
        HeadgateError: JOB_RUNNING, JOB_BUSY or JOB_IN_USE.
    """
    if has_supervisor(home):
        # Refuses, with the process that has the job.
        with home.locked(verb="delete"):
            pass
    _check_unused(home)


def delete_job(home: JobFolder, *, keep_savepoints: bool = False) -> Deletion:
    """Delete a job that is not running, and return what was removed.

    A kill leaves the job as it was, or a folder that no list shows and that the next start or
    delete of a job removes. A server does not start the job again.

    Args:
        keep_savepoints: Leave the savepoints in the job's folder; a new job of that name finds
            them there.

    Raises:
        HeadgateError: JOB_RUNNING; JOB_BUSY while a restore reads its checkpoints, or another
            process deletes it; JOB_IN_USE; JOB_NOT_DELETED.
    """
    finish_deletions(home.root)
    try:
        with home.locked(verb="delete"), held_stores(home, verb="delete") as stores:
            _check_unused(home)
            deletion = _describe(home, keep_savepoints=keep_savepoints)
            Session(home.root).let_go(home.name)
            stores.empty_records()
            aside = set_aside(home, keep_savepoints=keep_savepoints)
            remove_aside(aside, let_go=stores.let_go)
    except FileNotFoundError:
        # Another process may have deleted it meanwhile.
        get_job(home.root, home.name, verb="delete")
        raise
    return deletion


def _describe(home: JobFolder, *, keep_savepoints: bool) -> Deletion:
    parts = dict(_parts(home, keep_savepoints=keep_savepoints))
    sizes = measure(parts)
    kept = [f"savepoints in {folder}" for folder in _savepoint_folders(home) if keep_savepoints]
    return Deletion(
        job=home.name,
        removes=tuple(Removal(what, parts[what], size) for what, size in sizes.items()),
        stays=(*kept, *_taken_over(home), *find_remains(home)),
        bytes=sum(sizes.values()),
    )


def find_own(home: JobFolder, run: Path) -> Location | None:
    """Return the folder of a run that is elsewhere, unless another home has taken it over."""
    outside = find_outside(run)
    if outside is None or is_local(outside):
        return outside
    return outside if StoreRecord(home, outside.parent).is_ours() else None


def _taken_over(home: JobFolder) -> Iterator[str]:
    """Yield the stores with runs that another home has taken over, a line each."""
    outside = list_outside(home.path / "runs")
    for store in sorted({place.parent for place in outside if not is_local(place)}, key=str):
        if not StoreRecord(home, store).is_ours():
            yield f"runs on {store}, which another home has taken over"


def _parts(home: JobFolder, *, keep_savepoints: bool) -> Iterator[tuple[str, tuple[Location, ...]]]:
    """Yield what is removed and its files: first the parts that others may share files with."""
    savepoints = _savepoint_folders(home)
    if savepoints and not keep_savepoints:
        count = sum(len(list_names(folder)) for folder in savepoints)
        yield f"{count} savepoint{'s' if count != 1 else ''}", savepoints
    for name in list_names(home.path / "runs"):
        run = home.path / "runs" / name
        outside = find_own(home, run)
        yield f"run {name}", (run,) if outside is None else (run, outside)
    # The lock is empty until a process writes its number.
    others = (*SAVEPOINT_FOLDERS, "runs", "lock")
    yield _REST, tuple(path for path in sorted(home.path.iterdir()) if path.name not in others)


def _savepoint_folders(home: JobFolder) -> tuple[Path, ...]:
    folders = (home.path / name for name in SAVEPOINT_FOLDERS)
    return tuple(folder for folder in folders if list_names(folder))


def _check_unused(home: JobFolder) -> None:
    """Refuse a job whose folder something else needs.

    Jobs that were started from its checkpoints or savepoints do not: a restore links or copies all
    files into a folder of its own.
    """
    for lineage in list_names(home.path / "runs"):
        kept = home.checkpoints_folder(lineage)
        for name in list_names(kept):
            if is_held(kept / name):
                raise HeadgateError(
                    "JOB_BUSY",
                    f"cannot delete job {home.name!r}: a process reads its checkpoint {name}",
                    hint=f"headgate show {home.name}",
                    retryable=True,
                )
    inside = home.path.resolve()
    for other in list_job_names(home.root):
        runs = JobFolder(home.root, other).path / "runs"
        if other != home.name and any(
            folder.resolve().is_relative_to(inside)
            for folder in list_outside(runs)
            if is_local(folder)
        ):
            raise HeadgateError(
                "JOB_IN_USE",
                f"cannot delete job {home.name!r}: the checkpoints of job {other!r} are in its "
                f"folder {home.path}",
                hint=f"headgate delete {other}",
            )
