"""Whether a checkpoint is as it was written: every file, whatever the damage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._checksums import find_hadoop_problem, find_spark_problem
from headgate.checkpoints.catalog import Kept
from headgate.checkpoints.log_sums import find_left_behind, find_unsummed, sums_name
from headgate.checkpoints.manifest import FileFacts, Manifest
from headgate.checkpoints.problems import Problem, gone, refuse
from headgate.checkpoints.sparklog import find_last_commit, read_batch, survey
from headgate.checkpoints.storage import sha256_of
from headgate.errors import HeadgateError

__all__ = ["Problem", "check", "find_good", "verify", "verify_batch", "verify_begun"]

# Files up to this size are read even by a quick look: the logs, and what names other files.
_SMALL = 1 << 16


def verify(folder: Path, *, quick: bool = False) -> list[Problem]:
    """Return what is wrong with a kept checkpoint, a savepoint or Spark's own folder.

    An empty list means that every file is there and as it was written. Of Spark's own folder the
    newest batch that committed is looked at. Damage never raises.

    Args:
        quick: Look at names and sizes, and read small files only: milliseconds, however large
            the state is.
    """
    file = manifests.find_file(folder)
    if file is None:
        return _verify_plain(folder, quick=quick)
    try:
        found = manifests.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [Problem(file.name, f"it does not parse: {error}")]
    return verify_manifest(folder, found, quick=quick)


def verify_batch(
    checkpoint: Path, batch: int, *, quick: bool = False, summed_since: int | None = None
) -> list[Problem]:
    """Return what is wrong with one batch in Spark's own folder.

    Args:
        summed_since: The first batch whose logs must have checksums; None if none must.
    """
    found = survey(checkpoint, batch)
    sums = set(found.files)
    problems = [*found.problems, *find_unsummed(found.files, sums, summed_since)]
    if not problems:
        problems += find_left_behind(found.files, read_batch(checkpoint, batch).positions)
    for file in found.files:
        problems += _guarded(checkpoint, file, None, sums, quick=quick)
    return _unique(problems)


def verify_begun(checkpoint: Path, batch: int, *, summed_since: int | None) -> list[Problem]:
    """Return what is wrong with the log of a batch that was begun and did not commit."""
    file = f"offsets/{batch}"
    sums = {sums_name(file)} if (checkpoint / sums_name(file)).is_file() else set()
    try:
        read_batch(checkpoint, batch)
    except HeadgateError as error:
        return [Problem(file, error.message)]
    unsummed = find_unsummed([file], sums, summed_since)
    return unsummed + _guarded(checkpoint, file, None, sums, quick=False)


def verify_manifest(folder: Path, found: Manifest, *, quick: bool = False) -> list[Problem]:
    """Return what differs between a folder and what its manifest says."""
    problems: list[Problem] = []
    names, sums = set(found.files), set(found.files)
    # Checksum files have a checksum of ours, and come first: a damaged one says nothing of others.
    for file, facts in sorted(found.files.items(), key=lambda each: each[1].sha256 is None):
        told = _guarded(folder, file, facts, sums, quick=quick)
        sums.difference_update(each.file for each in told)
        problems += told
    if not problems:
        # Every file is as it was: what is left is a manifest that does not name all that is needed.
        needed = survey(folder, found.batch)
        problems += needed.problems
        problems += [
            Problem(file, "the manifest does not name it")
            for file in needed.files
            if file not in names
        ]
    return _unique(problems)


def check(folder: Path, *, what: str, hint: str, quick: bool = False) -> None:
    """Refuse a checkpoint that is not as it was written.

    Args:
        what: What cannot be done then, as in `cannot restore from checkpoint 17`.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE if files are missing, else CHECKPOINT_DAMAGED.
    """
    problems = verify(folder, quick=quick)
    if problems:
        raise refuse(what, problems, folder, hint=hint)


def find_good(
    kept: Iterable[Kept], *, quick: bool = False
) -> tuple[Kept | None, Mapping[str, Sequence[Problem]]]:
    """Return the newest checkpoint that is whole, and what is wrong with each newer one, by id."""
    bad: dict[str, Sequence[Problem]] = {}
    for each in sorted(kept, key=lambda each: (each.completed_at, each.batch), reverse=True):
        problems = verify(each.folder, quick=quick)
        if not problems:
            return each, bad
        bad[each.id] = problems
    return None, bad


def _verify_plain(folder: Path, *, quick: bool) -> list[Problem]:
    try:
        if not folder.is_dir():
            return [Problem(str(folder), "there is no such folder", missing=True)]
        last = find_last_commit(folder)
    except OSError as error:
        return [Problem(str(folder), error.strerror or str(error))]
    if last is None:
        return [Problem("commits", "no batch has committed", missing=True)]
    return verify_batch(folder, last, quick=quick)


def _guarded(
    folder: Path, file: str, facts: FileFacts | None, sums: set[str], *, quick: bool
) -> list[Problem]:
    """Look at one file; `sums` are the files that may be believed as checksums of others."""
    try:
        return _look(folder, file, facts, sums, quick=quick)
    except FileNotFoundError:
        return [gone(file)]
    except OSError as error:
        return [Problem(file, f"it cannot be read: {error.strerror or error}")]
    except (HeadgateError, ValueError) as error:
        return [Problem(file, f"it cannot be read: {error}")]


def _look(
    folder: Path, file: str, facts: FileFacts | None, sums: set[str], *, quick: bool
) -> list[Problem]:
    path = folder / file
    size = path.stat().st_size
    if not path.is_file():
        return [Problem(file, "it is no file")]
    if facts is not None and size != facts.size:
        cut = "it is cut short: " if size < facts.size else ""
        return [Problem(file, f"{cut}{size} bytes, and {facts.size} were written")]
    if quick and size > _SMALL:
        return []
    if facts is not None and facts.sha256 is not None:
        differs = sha256_of(path) != facts.sha256
        return [Problem(file, "its checksum differs")] if differs else []
    told = _find_sums_problem(path, file, sums)
    return [Problem(file, told)] if told else []


def _find_sums_problem(path: Path, file: str, sums: set[str]) -> str:
    parent, _, name = file.rpartition("/")
    prefix = f"{parent}/" if parent else ""
    if f"{prefix}{name}.crc" in sums:
        return find_spark_problem(path, path.with_name(f"{name}.crc"))
    if f"{prefix}.{name}.crc" in sums:
        return find_hadoop_problem(path, path.with_name(f".{name}.crc"))
    return ""


def _unique(problems: Iterable[Problem]) -> list[Problem]:
    """Return one problem for each file, what is missing first."""
    found: dict[str, Problem] = {}
    for each in problems:
        found.setdefault(each.file, each)
    return sorted(found.values(), key=lambda each: not each.missing)
