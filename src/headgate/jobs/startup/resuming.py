"""What a start and a restart may go on from: the checkpoint as the run left it, and no other."""

from __future__ import annotations

from collections.abc import Iterator

from headgate._locations import Location, is_local
from headgate.checkpoints.catalog import list_kept, list_names
from headgate.checkpoints.problems import Problem, gone
from headgate.checkpoints.sparklog import (
    METADATA,
    find_begun,
    find_last_commit,
    read_query_id,
    survey_files,
)
from headgate.checkpoints.stores import files_at
from headgate.checkpoints.verify import find_good, verify_batch, verify_begun
from headgate.errors import Domain, HeadgateError, StoreError
from headgate.jobs.checkpoints.listing import list_readable_past
from headgate.jobs.checkpoints.restore import READ_WHOLE
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, find_run
from headgate.jobs.runs.reached import Reached, find_reached


def check_attempt(home: JobFolder, run: Run) -> None:
    """Refuse an attempt that would not go on where the run was.

    Large files of state are not read: Spark compares them with their checksums as it loads them.

    Raises:
        HeadgateError: CHECKPOINT_DAMAGED, which waiting does not fix.
    """
    problems = find_damage(home, run, quick=True)
    if problems:
        raise HeadgateError(
            "CHECKPOINT_DAMAGED",
            f"cannot continue job {home.name!r}: its checkpoint was changed: "
            + "; ".join(str(problem) for problem in problems[:3]),
            hint=_way_out(home),
            domain=Domain.EXTERNAL,
        )


def find_damage(home: JobFolder, run: Run, *, quick: bool = False) -> list[Problem]:
    """Return what is wrong with the newest batch of a run, and with one that was only begun.

    An empty list means that the run goes on exactly where it was, or that it never ran.

    Args:
        quick: Read small files only; by default every file is read, unless that would take long.
    """
    checkpoint = run.checkpoint
    reached = find_reached(home, run.lineage)
    ran = reached is not None or home.find_present_run() == run.lineage
    if ran and is_local(checkpoint) and not checkpoint.is_dir():
        return [Problem(str(checkpoint), "the folder is missing", missing=True)]
    problems = [] if not ran else list(_find_foreign(checkpoint, reached))
    problems += _find_behind(checkpoint, _least(run, reached))
    last, begun = find_last_commit(checkpoint), find_begun(checkpoint)
    if last is None and list_kept(home.checkpoints_folder(run.lineage)):
        problems.append(
            Problem("commits", "no batch has committed, and checkpoints were kept", missing=True)
        )
    if last is not None:
        quick = quick or _size(checkpoint, last) > READ_WHOLE
        since = run.checksums_since
        problems += verify_batch(checkpoint, last, quick=quick, summed_since=since)
    if begun is not None and begun > (-1 if last is None else last):
        problems += _find_open_problems(run, begun, last)
    return list(dict.fromkeys(problems))


def check_job_file(home: JobFolder) -> None:
    """Refuse to begin anew where `job.json`, which names the present run, is gone.

    A start that was killed before its first batch leaves a run behind, and no such file.

    Raises:
        HeadgateError: JOB_FILE_MISSING.
    """
    file = home.path / "job.json"
    if file.exists():
        return
    written = [lineage for lineage in list_names(home.path / "runs") if _has_begun(home, lineage)]
    if not written:
        return
    kept = list_kept(home.checkpoints_folder(written[-1]))
    go_on = f"go on with --from {written[-1]}/{kept[-1].id}, or " if kept else ""
    raise HeadgateError(
        "JOB_FILE_MISSING",
        f"cannot start job {home.name!r}: {file}, which names the current run, is missing, "
        f"and run {written[-1]} has written output, which a run from the start would duplicate",
        hint=f"restore the file, {go_on}write everything again with --fresh",
        domain=Domain.EXTERNAL,
    )


def _find_foreign(checkpoint: Location, reached: Reached | None) -> Iterator[Problem]:
    """Yield whether the folder is not that of the run's query."""
    if not (checkpoint / METADATA).is_file():
        yield gone(METADATA)
    elif reached is not None:
        try:
            if read_query_id(checkpoint) != reached.query:
                yield Problem(METADATA, f"it is not of the run's query, {reached.query}")
        except StoreError:
            raise
        except HeadgateError as error:
            yield Problem(METADATA, error.message)


def _find_behind(checkpoint: Location, least: int) -> Iterator[Problem]:
    begun = find_begun(checkpoint)
    if least > (-1 if begun is None else begun):
        yield Problem(f"offsets/{least}", "it is missing, and the batch has begun", missing=True)


def _least(run: Run, reached: Reached | None) -> int:
    """Return the newest batch that the checkpoint must have; -1 if it may have none."""
    known = None if reached is None else reached.batch
    return max(_forked_at(run), -1 if known is None else known)


def _forked_at(run: Run) -> int:
    """Return the batch that a run was restored at, where it goes on from the files as they were."""
    return -1 if run.origin is None or run.origin.folder is not None else run.origin.batch


def _find_open_problems(run: Run, begun: int, last: int | None) -> list[Problem]:
    problems = verify_begun(run.checkpoint, begun, summed_since=run.checksums_since)
    if begun > (-1 if last is None else last) + 1:
        # Spark would run the batch all the same, with the state of an earlier one.
        problems.append(gone(f"commits/{begun - 1}"))
    return problems


def _has_begun(home: JobFolder, lineage: str) -> bool:
    """Tell whether a run has begun a batch of its own, by whatever is left of it."""
    if list_names(home.checkpoints_folder(lineage)):
        return True
    run = find_run(home, lineage)
    checkpoint: Location = home.run_folder(lineage) / "checkpoint"
    if run is not None:
        checkpoint = run.checkpoint
    begun = find_begun(checkpoint)
    reached = find_reached(home, lineage)
    known = None if reached is None else reached.batch
    newest = max(-1 if begun is None else begun, -1 if known is None else known)
    return newest > (-1 if run is None else _forked_at(run))


def _way_out(home: JobFolder) -> str:
    past = list_readable_past(home)
    good, _ = find_good(past, quick=True)
    restore = "" if good is None else f"headgate restore {home.name} --from {good.id}; or "
    return f"{restore}start empty with --fresh"


def _size(checkpoint: Location, batch: int) -> int:
    present = files_at(checkpoint)
    return sum(
        present.size(file) for file in survey_files(present, batch).files if present.has(file)
    )
