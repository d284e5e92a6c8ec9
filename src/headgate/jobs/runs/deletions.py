"""Folders of jobs that are being deleted.

A deleted job's folder is first renamed to one that no list of jobs shows, and then removed. The new
name says what a process that finishes the deletion must know: a kill at any moment leaves a job
that is listed, or a renamed folder that `finish_deletions` removes.
"""

from __future__ import annotations

import fcntl
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from headgate._locations import Location, is_local, parse_location
from headgate.checkpoints.storage import is_draft
from headgate.checkpoints.stores import place_at
from headgate.errors import Domain, HeadgateError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import read_manifest
from headgate.jobs.runs.store_record import StoreRecord, list_stores

# Names of jobs have no dots, so the parts of a folder's name are clear.
_DELETING = "deleting"
_KEEPING = "deleting-without-savepoints"
_DOTS = 3
SAVEPOINT_FOLDERS = ("savepoints", "portable")


def set_aside(home: JobFolder, *, keep_savepoints: bool) -> Path:
    """Rename a job's folder, so that the job is gone, and return the folder.

    The caller has the job's lock.
    """
    kind = _KEEPING if keep_savepoints else _DELETING
    aside = home.path.with_name(f".{kind}.{home.name}.{secrets.token_hex(4)}")
    home.path.rename(aside)
    return aside


def remove_aside(aside: Path, *, let_go: Callable[[Location], None] = lambda _: None) -> None:
    """Remove a folder that was set aside, with the runs that it has elsewhere.

    Savepoints that the job's user keeps go back to their place. Each step may be repeated.

    Args:
        let_go: Ends the caller's claim on a store, right before the claims there are removed.

    Raises:
        HeadgateError: JOB_NOT_DELETED if the system refuses.
    """
    _, kind, job, token = aside.name.split(".")
    try:
        if kind == _KEEPING:
            _put_back_savepoints(aside, aside.with_name(job), token)
        # Before the manifests are gone that name them.
        for outside in list_outside(aside / "runs"):
            if is_local(outside):
                remove_folder(outside)
        for store in _list_stores(aside):
            _remove_on_store(aside, store, job, let_go)
        target = aside.resolve()
        remove_folder(target)
        if target != aside:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise HeadgateError(
            "JOB_NOT_DELETED",
            f"cannot remove all files of job {job!r}: {error}; the next start or delete of a job "
            "tries again",
            hint=f"rm -r {aside}",
            domain=Domain.EXTERNAL,
        ) from error


def finish_deletions(root: Path) -> None:
    """Remove the folders that deletions left behind when they were killed."""
    for aside in sorted((root / "jobs").glob(f".{_DELETING}*.*.*")):
        with suppress(HeadgateError):
            if aside.name.count(".") == _DOTS and not _is_held(aside):
                remove_aside(aside)


def _list_stores(job: Path) -> set[Location]:
    """Return the folders of stores with files of a job."""
    station = JobFolder(job.parent.parent, job.name)
    remote = (place for place in list_outside(job / "runs") if not is_local(place))
    return {*list_stores(station), *(place.parent for place in remote)}


def _remove_on_store(
    aside: Path, store: Location, job: str, let_go: Callable[[Location], None]
) -> None:
    """Remove a job's files on a store, unless another home has taken the job over."""
    record = StoreRecord(JobFolder(aside.parent.parent, aside.name), store, job=job)
    if not record.is_ours():
        return
    for outside in list_outside(aside / "runs"):
        if outside.parent == store:
            place_at(outside).remove_tree()
    let_go(store)
    # Another home may have begun a job of this name meanwhile.
    if record.is_ours():
        record.remove()


def list_outside(runs: Path) -> Iterator[Location]:
    """Yield the folders of a job's runs that `--checkpoints` placed elsewhere.

    Args:
        runs: The folder of the job's runs.
    """
    for run in sorted(runs.glob("*")):
        outside = find_outside(run)
        if outside is not None:
            yield outside


def find_outside(run: Path) -> Location | None:
    """Return the folder of a run that is elsewhere; None if it has none, or it cannot be read."""
    with suppress(HeadgateError, OSError, KeyError):
        content = read_manifest(run)
        checkpoint = None if content is None else parse_location(str(content["checkpoint"]))
        if content is None or checkpoint is None:
            return None
        names = (checkpoint.parent.name, checkpoint.name)
        # Other folders than those that Headgate creates are not removed.
        if names != (str(content["lineage"]), "checkpoint"):
            return None
        if not is_local(checkpoint) or (checkpoint.is_absolute() and checkpoint.parent.is_dir()):
            return checkpoint.parent
    return None


def remove_folder(folder: Path) -> None:
    """Remove a folder; several processes may do so at once.

    Raises:
        OSError: A file cannot be removed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(FileNotFoundError):
        # Reports what the first pass could not remove.
        shutil.rmtree(folder)


def _put_back_savepoints(aside: Path, job: Path, token: str) -> None:
    for name in SAVEPOINT_FOLDERS:
        for savepoint in sorted((aside / name).glob("*")):
            if is_draft(savepoint):
                continue
            place = job / name / savepoint.name
            place.parent.mkdir(parents=True, exist_ok=True)
            savepoint.rename(place.with_name(f"{place.name}-{token}") if place.exists() else place)


def _is_held(aside: Path) -> bool:
    """Return True if the process that deletes the job is alive."""
    try:
        with (aside / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
