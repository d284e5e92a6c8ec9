"""Verification of a checkpoint: whether every file is unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._checksums import (
    find_hadoop_problem,
    find_spark_problem,
    sums_names,
)
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.log_sums import find_left_behind, find_unsummed, sums_name
from headgate.checkpoints.manifest import FileFacts, Manifest
from headgate.checkpoints.problems import Problem, gone, refuse
from headgate.checkpoints.sparklog import find_last_commit, read_batch, survey
from headgate.checkpoints.storage import sha256_of
from headgate.errors import HeadgateError

# A quick check reads files up to this size: the logs, and files that name others.
_SMALL = 1 << 16


def verify(folder: Path, *, quick: bool = False) -> list[Problem]:
    """Return the problems of a retained checkpoint, a savepoint or Spark's own folder.

    An empty list means that every file exists and is unchanged. In Spark's own folder the newest
    committed batch is checked. Corruption never raises.

    Args:
        quick: Check names and sizes, and read small files only: milliseconds for any size of state.
    """
    file = manifests.find_file(folder)
    if file is None:
        return _verify_plain(folder, quick=quick)
    try:
        manifest = manifests.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [Problem(file.name, f"it does not parse: {error}")]
    return verify_manifest(folder, manifest, quick=quick)


def verify_batch(
    checkpoint: Path, batch: int, *, quick: bool = False, summed_since: int | None = None
) -> list[Problem]:
    """Return the problems of one batch in Spark's own folder.

    Args:
        summed_since: The first batch whose logs must have checksums; None if none must.
    """
    needed = survey(checkpoint, batch)
    sums = set(needed.files)
    problems = [*needed.problems, *find_unsummed(needed.files, sums, summed_since)]
    if not problems:
        problems += find_left_behind(needed.files, read_batch(checkpoint, batch).positions)
    for file in needed.files:
        problems += _guarded(checkpoint, file, None, sums, quick=quick)
    return _unique(problems)


def verify_begun(checkpoint: Path, batch: int, *, summed_since: int | None) -> list[Problem]:
    """Return the problems of the log of a begun batch that did not commit."""
    file = f"offsets/{batch}"
    sums = {sums_name(file)} if (checkpoint / sums_name(file)).is_file() else set()
    try:
        read_batch(checkpoint, batch)
    except HeadgateError as error:
        return [Problem(file, error.message)]
    unsummed = find_unsummed([file], sums, summed_since)
    return unsummed + _guarded(checkpoint, file, None, sums, quick=False)


def verify_manifest(folder: Path, manifest: Manifest, *, quick: bool = False) -> list[Problem]:
    """Return the differences between a folder and its manifest."""
    problems: list[Problem] = []
    names, sums = set(manifest.files), set(manifest.files)
    # Checksum files come first: a corrupted one must not be used for others.
    for file, facts in sorted(manifest.files.items(), key=lambda entry: entry[1].sha256 is None):
        found_here = _guarded(folder, file, facts, sums, quick=quick)
        sums.difference_update(problem.file for problem in found_here)
        problems += found_here
    if not problems:
        # Every file is unchanged: check that the manifest names all needed files.
        needed = survey(folder, manifest.batch)
        problems += needed.problems
        problems += [
            Problem(file, "the manifest does not name it")
            for file in needed.files
            if file not in names
        ]
    return _unique(problems)


def check(folder: Path, *, what: str, hint: str, quick: bool = False) -> None:
    """Refuse a checkpoint that has changed.

    Args:
        what: What could not be done, as in `cannot restore from checkpoint 17`.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE if files are missing, else CHECKPOINT_DAMAGED.
    """
    problems = verify(folder, quick=quick)
    if problems:
        raise refuse(what, problems, folder, hint=hint)


def find_good(
    kept: Iterable[Checkpoint], *, quick: bool = False
) -> tuple[Checkpoint | None, Mapping[str, Sequence[Problem]]]:
    """Return the newest valid checkpoint, and the problems of each newer one, by id."""
    bad: dict[str, Sequence[Problem]] = {}
    for checkpoint in sorted(
        kept, key=lambda checkpoint: (checkpoint.completed_at, checkpoint.batch), reverse=True
    ):
        problems = verify(checkpoint.folder, quick=quick)
        if not problems:
            return checkpoint, bad
        bad[checkpoint.id] = problems
    return None, bad


def _verify_plain(folder: Path, *, quick: bool) -> list[Problem]:
    try:
        if not folder.is_dir():
            return [Problem(str(folder), "the folder does not exist", missing=True)]
        last = find_last_commit(folder)
    except OSError as error:
        return [Problem(str(folder), error.strerror or str(error))]
    if last is None:
        return [Problem("commits", "no batch has committed", missing=True)]
    return verify_batch(folder, last, quick=quick)


def _guarded(
    folder: Path, file: str, facts: FileFacts | None, sums: set[str], *, quick: bool
) -> list[Problem]:
    """Check one file; `sums` are the valid checksum files."""
    try:
        return _look(folder, file, facts, sums, quick=quick)
    except FileNotFoundError:
        return [gone(file)]
    except OSError as error:
        return [Problem(file, f"it is not readable: {error.strerror or error}")]
    except (HeadgateError, ValueError) as error:
        return [Problem(file, f"it is not readable: {error}")]


def _look(
    folder: Path, file: str, facts: FileFacts | None, sums: set[str], *, quick: bool
) -> list[Problem]:
    path = folder / file
    size = path.stat().st_size
    if not path.is_file():
        return [Problem(file, "it is not a file")]
    if facts is not None and size != facts.size:
        cut = "it is truncated: " if size < facts.size else ""
        return [Problem(file, f"{cut}{size} bytes instead of {facts.size}")]
    if quick and size > _SMALL:
        return []
    if facts is not None and facts.sha256 is not None:
        differs = sha256_of(path) != facts.sha256
        return [Problem(file, "its checksum differs")] if differs else []
    sums_problem = _find_sums_problem(path, file, sums)
    return [Problem(file, sums_problem)] if sums_problem else []


def _find_sums_problem(path: Path, file: str, sums: set[str]) -> str:
    of_spark, of_hadoop = sums_names(file)
    if of_spark in sums:
        return find_spark_problem(path, path.with_name(f"{path.name}.crc"))
    if of_hadoop in sums:
        return find_hadoop_problem(path, path.with_name(f".{path.name}.crc"))
    return ""


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem per file, missing files first."""
    by_file: dict[str, Problem] = {}
    for problem in problems:
        by_file.setdefault(problem.file, problem)
    return sorted(by_file.values(), key=lambda problem: not problem.missing)
