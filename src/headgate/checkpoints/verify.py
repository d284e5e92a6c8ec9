"""Verification of a checkpoint: whether every file is unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headgate._locations import Location, is_local
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._checksums import (
    find_hadoop_problem,
    find_spark_problem,
    sha256_of,
    sums_names,
)
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.log_sums import find_left_behind, find_unsummed, sums_name
from headgate.checkpoints.manifest import FileFacts, Manifest
from headgate.checkpoints.problems import Problem, gone, refuse
from headgate.checkpoints.sparklog import find_last_commit, read_batch, survey_files
from headgate.checkpoints.stores import Files, files_at, place_at
from headgate.errors import HeadgateError, StoreError

# A quick check reads files up to this size: the logs, and files that name others.
_SMALL = 1 << 16
# Files that a store is asked for together.
_GROUP = 128
# Larger ones are read one by one, in pieces.
_LARGE = 1 << 20


def verify(folder: Location, *, quick: bool = False) -> list[Problem]:
    """Return the problems of a retained checkpoint, a savepoint or Spark's own folder.

    An empty list means that every file exists and is unchanged. In Spark's own folder the newest
    committed batch is checked. Corruption never raises.

    Args:
        quick: Check names and sizes, and read small files only: milliseconds for any size of state.
    """
    place = place_at(folder)
    entry = place.find_entry()
    if entry is None:
        return _verify_plain(folder, quick=quick)
    content = place.read_texts([entry.manifest])[0]
    try:
        if isinstance(content, Exception):
            raise content
        manifest = manifests.parse(content)
    except (OSError, ValueError) as error:
        return [Problem(entry.manifest, f"it does not parse: {error}")]
    return verify_manifest(folder, manifest, quick=quick)


def verify_batch(
    checkpoint: Location, batch: int, *, quick: bool = False, summed_since: int | None = None
) -> list[Problem]:
    """Return the problems of one batch in Spark's own folder.

    Args:
        summed_since: The first batch whose logs must have checksums; None if none must.
    """
    return verify_files(files_at(checkpoint), batch, quick=quick, summed_since=summed_since)


def verify_files(
    present: Files, batch: int, *, quick: bool = False, summed_since: int | None = None
) -> list[Problem]:
    """Return what `verify_batch` does, of files that are listed already."""
    needed = survey_files(present, batch)
    sums = set(needed.files)
    problems = [*needed.problems, *find_unsummed(needed.files, sums, summed_since)]
    if not problems:
        problems += find_left_behind(needed.files, read_batch(present.root, batch).positions)
    for file in _prepared(present, needed.files, quick=quick):
        problems += _guarded(present, file, None, sums, quick=quick)
    return _unique(problems)


def verify_begun(checkpoint: Location, batch: int, *, summed_since: int | None) -> list[Problem]:
    """Return the problems of the log of a begun batch that did not commit."""
    file = f"offsets/{batch}"
    present = files_at(checkpoint)
    sums = {sums_name(file)} if sums_name(file) in _beside(present, file) else set()
    try:
        read_batch(checkpoint, batch)
    except StoreError:
        raise
    except HeadgateError as error:
        return [Problem(file, error.message)]
    unsummed = find_unsummed([file], sums, summed_since)
    return unsummed + _guarded(present, file, None, sums, quick=False)


def verify_manifest(folder: Location, manifest: Manifest, *, quick: bool = False) -> list[Problem]:
    """Return the differences between a folder and its manifest."""
    problems: list[Problem] = []
    present = files_at(folder)
    names, sums = set(manifest.files), set(manifest.files)
    # Checksum files come first: a corrupted one must not be used for others.
    ordered = sorted(manifest.files, key=lambda file: manifest.files[file].sha256 is None)
    for file in _prepared(present, ordered, quick=quick):
        found_here = _guarded(present, file, manifest.files[file], sums, quick=quick)
        sums.difference_update(problem.file for problem in found_here)
        problems += found_here
    if not problems:
        # Every file is unchanged: check that the manifest names all needed files.
        needed = survey_files(present, manifest.batch)
        problems += needed.problems
        problems += [
            Problem(file, "the manifest does not name it")
            for file in needed.files
            if file not in names
        ]
    return _unique(problems)


def check(folder: Location, *, what: str, hint: str, quick: bool = False) -> None:
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


def _verify_plain(folder: Location, *, quick: bool) -> list[Problem]:
    try:
        if is_local(folder) and not folder.is_dir():
            return [Problem(str(folder), "the folder does not exist", missing=True)]
        last = find_last_commit(folder)
    except OSError as error:
        return [Problem(str(folder), error.strerror or str(error))]
    if last is None:
        return [Problem("commits", "no batch has committed", missing=True)]
    return verify_batch(folder, last, quick=quick)


def _prepared(present: Files, files: Sequence[str], *, quick: bool) -> Iterator[str]:
    """Yield files that are about to be read, after a store was asked for many at a time."""
    largest = _SMALL if quick else _LARGE
    for start in range(0, len(files), _GROUP):
        group = files[start : start + _GROUP]
        named = {file for name in group for file in (name, *sums_names(name))}
        present.prepare(
            file for file in named if present.has(file) and present.size(file) <= largest
        )
        yield from group


def _beside(present: Files, file: str) -> Iterable[str]:
    folder = file.rpartition("/")[0]
    return (f"{folder}/{name}" for name in present.children(folder))


def _guarded(
    present: Files, file: str, facts: FileFacts | None, sums: set[str], *, quick: bool
) -> list[Problem]:
    """Check one file; `sums` are the valid checksum files."""
    try:
        return _look(present, file, facts, sums, quick=quick)
    except FileNotFoundError:
        return [gone(file)]
    except OSError as error:
        return [Problem(file, f"it is not readable: {error.strerror or error}")]
    except StoreError:
        raise
    except (HeadgateError, ValueError) as error:
        return [Problem(file, f"it is not readable: {error}")]


def _look(
    present: Files, file: str, facts: FileFacts | None, sums: set[str], *, quick: bool
) -> list[Problem]:
    size = present.size(file)
    if not present.has(file):
        return [Problem(file, "it is not a file")]
    if facts is not None and size != facts.size:
        cut = "it is truncated: " if size < facts.size else ""
        return [Problem(file, f"{cut}{size} bytes instead of {facts.size}")]
    if quick and size > _SMALL:
        return []
    if facts is not None and facts.sha256 is not None:
        differs = sha256_of(present, file) != facts.sha256
        return [Problem(file, "its checksum differs")] if differs else []
    sums_problem = _find_sums_problem(present, file, sums)
    return [Problem(file, sums_problem)] if sums_problem else []


def _find_sums_problem(present: Files, file: str, sums: set[str]) -> str:
    of_spark, of_hadoop = sums_names(file)
    if of_spark in sums:
        return find_spark_problem(present, file, of_spark)
    if of_hadoop in sums:
        return find_hadoop_problem(present, file, of_hadoop)
    return ""


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem per file, missing files first."""
    by_file: dict[str, Problem] = {}
    for problem in problems:
        by_file.setdefault(problem.file, problem)
    return sorted(by_file.values(), key=lambda problem: not problem.missing)
