"""Pruning: the files of old runs that nothing needs any more."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headgate._locations import Location, is_local
from headgate.checkpoints.catalog import is_held, list_names, read_kept, remove
from headgate.checkpoints.storage import is_draft
from headgate.checkpoints.stores import files_in_folder, place_at
from headgate.errors import HeadgateError, StoreError
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.removal.deletion import Removal, find_own
from headgate.jobs.removal.sizes import measure
from headgate.jobs.runs.deletions import find_outside, finish_deletions
from headgate.jobs.runs.job_stores import held_stores
from headgate.jobs.runs.lineage import Run, find_run, walk_lineage

_SPARK = "checkpoint"
_KEPT = "checkpoints"
_STATE = "state"
# Files that an audit, or the next start, needs of a run whose other files are gone.
_SMALL = ("run.json", "at-least-once", "reached.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What pruning a job removes, and what it leaves of old runs.

    Attributes:
        stays: What is not removed, a line each: checkpoints of old runs, runs that cannot be read.
        dry_run: Whether nothing was done.
    """

    job: str
    removes: tuple[Removal, ...]
    stays: tuple[str, ...]
    bytes: int
    dry_run: bool = False


@dataclass(slots=True)
class _OldRun:
    """An old run, with what of it goes.

    Attributes:
        checkpoints: The folders of its checkpoints that go.
        others: Its other files and folders that go.
        whole: Whether nothing stays of it, not even its manifest.
        kept: The names of its checkpoints that stay.
    """

    folder: Path
    checkpoints: list[Location] = field(default_factory=list)
    others: list[Location] = field(default_factory=list)
    whole: bool = False
    kept: list[str] = field(default_factory=list)

    @property
    def paths(self) -> tuple[Location, ...]:
        return (*self.checkpoints, *self.others, *((self.folder,) if self.whole else ()))


def prune_job(home: JobFolder, *, drop_checkpoints: bool = False, dry_run: bool = False) -> Pruning:
    """Remove the files of a job's old runs that nothing needs, and return what was removed.

    The present run stays as it is, and so do savepoints. Runs that it comes from keep their
    checkpoints, to which the job can go back. The job may run meanwhile: then runs that are newer
    than the present one stay, since a start may be creating one.

    Args:
        drop_checkpoints: Also remove the checkpoints of runs that the present run does not come
            from, unless they are pinned or being read.
        dry_run: Remove nothing.

    Raises:
        HeadgateError: JOB_FILE_BROKEN if the manifest of the present run, or of one that it comes
            from, cannot be read; JOB_FILE_MISSING if the present run is not known.
    """
    is_running = has_supervisor(home)
    if not dry_run:
        finish_deletions(home.root)
    # A start creates a run before the job names it.
    locks = not (dry_run or is_running)
    with contextlib.ExitStack() as held:
        if locks:
            held.enter_context(home.locked(verb="prune"))
            held.enter_context(held_stores(home, verb="prune"))
        runs, stays = _find_old(home, drop_checkpoints=drop_checkpoints, is_running=is_running)
        sizes = measure({run.folder.name: run.paths for run in runs})
        removes = [
            Removal(_describe(run), run.paths, sizes[run.folder.name]) for run in runs if run.paths
        ]
        for run in () if dry_run else runs:
            _remove(run)
    return Pruning(
        job=home.name,
        removes=tuple(removes),
        stays=tuple(stays),
        bytes=sum(sizes.values()),
        dry_run=dry_run,
    )


def _find_old(
    home: JobFolder, *, drop_checkpoints: bool, is_running: bool
) -> tuple[list[_OldRun], list[str]]:
    """Return the old runs with what goes of them, oldest first, and what stays, in words."""
    present = home.find_present_run()
    last = (home.find_json("status.json") or {}).get("lineage")
    newest = present or last
    folders = sorted((home.path / "runs").glob("*"))
    if folders and (newest is None or home.find_json("job.json") is None):
        raise HeadgateError(
            "JOB_FILE_MISSING",
            f"cannot prune job {home.name!r}: job.json does not name its present run",
            hint=f"restore job.json from a backup, or headgate delete {home.name}",
        )
    past = [ancestor.lineage for ancestor in walk_lineage(home, newest)]
    runs, stays = [], []
    for folder in folders:
        lineage = folder.name
        if lineage in (present, last) or (is_running and lineage > (newest or "")):
            continue
        if is_draft(folder):
            # A start or a prune that was killed left it.
            runs.append(_OldRun(folder, whole=True))
            continue
        try:
            run = find_run(home, lineage)
        except HeadgateError as error:
            stays.append(f"run {lineage}, which cannot be read: {error.message}")
            continue
        outside = find_outside(folder)
        if outside is not None and find_own(home, folder) is None:
            stays.append(f"run {lineage}, which another home has taken over")
            continue
        old = _judge(
            home,
            folder,
            drop_checkpoints=drop_checkpoints and lineage not in past,
            is_past=lineage in past,
            is_related=run is not None and past[-1:] == [_first_ancestor(home, run)],
        )
        runs.append(old)
        if old.kept:
            stays.append(f"{_count(old.kept)} of run {lineage}: {', '.join(old.kept)}")
    return runs, stays


def _judge(
    home: JobFolder, folder: Path, *, drop_checkpoints: bool, is_past: bool, is_related: bool
) -> _OldRun:
    """Return an old run with what goes of it.

    Args:
        is_past: The present run comes from it. An audit begins where its sources began, so only
            the state goes.
        is_related: It comes from the same first run as the present one. An audit tells their rows
            apart by the manifests.
    """
    old, kept = _OldRun(folder), home.checkpoints_folder(folder.name)
    for name in list_names(kept):
        if drop_checkpoints and not (_is_pinned(kept / name) or is_held(kept / name)):
            old.checkpoints.append(kept / name)
        else:
            old.kept.append(name)
    for path in [*folder.iterdir(), *_list_elsewhere(folder)]:
        if path.name == _SPARK and is_past:
            old.others += [path / _STATE] if (path / _STATE).is_dir() else []
        elif path.name not in (_KEPT, *_SMALL):
            old.others.append(path)
    old.whole = not (is_past or is_related or old.kept)
    return old


def _list_elsewhere(run: Path) -> list[Location]:
    """Return what a run has in a folder elsewhere."""
    outside = find_outside(run)
    names = () if outside is None else files_in_folder(outside).children("")
    return [outside / name for name in names] if outside is not None else []


def _remove(run: _OldRun) -> None:
    """Remove what goes of a run; a kill leaves the rest of it for the next time."""
    outside = find_outside(run.folder)
    for checkpoint in run.checkpoints:
        # One that was pinned, or is read by now, stays.
        remove(checkpoint)
    for path in run.others:
        if path.is_dir() and not (is_local(path) and path.is_symlink()):
            place_at(path).remove_tree()
        else:
            path.unlink(missing_ok=True)
    left = [path for path in run.checkpoints if path.exists()]
    if not run.whole or left:
        return
    for folder in (outside, run.folder):
        if folder is not None:
            place_at(folder).remove_tree()


def _describe(run: _OldRun) -> str:
    name = run.folder.name
    if run.whole:
        return f"run {name}"
    parts = [_count(run.checkpoints)] if run.checkpoints else []
    return f"{' and '.join([*parts, *(['Spark files'] if run.others else [])])} of run {name}"


def _count(checkpoints: Sequence[object]) -> str:
    return f"{len(checkpoints)} checkpoint{'s' if len(checkpoints) != 1 else ''}"


def _is_pinned(checkpoint: Location) -> bool:
    try:
        return read_kept(checkpoint).pinned
    except StoreError:
        raise
    except HeadgateError:
        return False


def _first_ancestor(home: JobFolder, run: Run) -> str:
    return [ancestor.lineage for ancestor in walk_lineage(home, run.lineage)][-1]
