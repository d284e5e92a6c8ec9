"""The kept checkpoints of a run: linked out of Spark's folder, listed, pinned, removed."""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._parsed import forget_parsed, read_manifest
from headgate.checkpoints.checkpoint import Checkpoint, describe_checkpoint
from headgate.checkpoints.manifest import (
    FILE_NAMES,
    CheckpointFacts,
    FileFacts,
    Kind,
    Manifest,
    SourceFacts,
    StateFacts,
)
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.sparklog import files_of
from headgate.checkpoints.storage import is_draft, link_files, publishing, remove_tree, sha256_of
from headgate.errors import HeadgateError

__all__ = [
    "Checkpoint",
    "CheckpointFacts",
    "FileFacts",
    "Kind",
    "Manifest",
    "SourceFacts",
    "StateFacts",
    "find",
    "find_batch",
    "find_number",
    "get",
    "hold",
    "keep",
    "list_all",
    "list_folders",
    "list_kept",
    "list_names",
    "list_unreadable",
    "pin",
    "read_kept",
    "read_manifest",
    "remove",
    "unpin",
]

_PINNED = "pinned"
# Empty; a process that needs the checkpoint for a while has a lock on it.
_HELD = "held"
_PREFIX = "chk-"


def keep(run_checkpoint: Path, batch: int, into: Path, facts: CheckpointFacts) -> Checkpoint:
    """Link a committed batch out of Spark's folder, while the query runs on.

    The cost follows the change: state files never change, so that those which the kept checkpoint
    before has are taken over with their checksums. A batch that is kept already is returned as
    it is.

    Args:
        into: The folder of the run's kept checkpoints; this one appears as `chk-N` in it, whole.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED or CHECKPOINT_NOT_WRITTEN.
    """
    folder = into / f"{_PREFIX}{batch}"
    known = _find_at(folder)
    if known is not None:
        return known
    before = _find_files_before(into, batch)
    files = files_of(run_checkpoint, batch)
    # One whose manifest is damaged helps nobody, and its batch is here to be kept again.
    remove_tree(folder)
    with publishing(folder) as draft:
        link_files(run_checkpoint, files, draft)
        found = describe(draft, files, before=before)
        manifest = Manifest(
            kind=Kind.CHECKPOINT,
            batch=batch,
            facts=facts,
            full_bytes=sum(each.size for each in found.values()),
            new_bytes=sum(each.size for file, each in found.items() if file not in before),
            files=found,
        )
        (draft / FILE_NAMES[Kind.CHECKPOINT]).write_text(
            manifests.render(manifest), encoding="utf-8"
        )
    return describe_checkpoint(folder, manifest)


def describe(
    folder: Path, files: Sequence[str], *, before: Mapping[str, FileFacts], thorough: bool = False
) -> dict[str, FileFacts]:
    """Return size and checksum of files.

    Args:
        before: Of the checkpoint before: what it has of the same state files is taken over.
        thorough: Compute a checksum of every file, also where Spark's own lies beside it.
    """
    names = set(files)
    found = {}
    for file in files:
        size = (folder / file).stat().st_size
        known = before.get(file)
        if known is not None and known.size == size and _never_changes(file):
            found[file] = known
            continue
        summed = has_sums(file, names) and not thorough
        found[file] = FileFacts(size, None if summed else sha256_of(folder / file))
    return found


def has_sums(file: str, names: set[str]) -> bool:
    """Tell whether a checksum that Spark or Hadoop wrote is among the files too."""
    parent, _, name = file.rpartition("/")
    prefix = f"{parent}/" if parent else ""
    return f"{prefix}{name}.crc" in names or f"{prefix}.{name}.crc" in names


def list_kept(folder: Path) -> list[Checkpoint]:
    """Return the checkpoints in a folder, oldest first; what cannot be read is left out."""
    return list_all(folder)[0]


def list_unreadable(folder: Path) -> list[Problem]:
    """Return the checkpoints in a folder whose manifest is missing or damaged."""
    return list_all(folder)[1]


def list_all(folder: Path) -> tuple[list[Checkpoint], list[Problem]]:
    """Return the checkpoints in a folder, oldest first, and those whose manifest does not read."""
    kept, problems = [], []
    for name in list_names(folder):
        try:
            kept.append(read_kept(folder / name))
        except HeadgateError as error:
            problems.append(Problem(name, error.message))
    return sorted(kept, key=lambda each: (each.batch, each.completed_at, each.id)), problems


def list_names(folder: Path) -> list[str]:
    """Return the names of the checkpoints' folders in a folder; none of them is read."""
    try:
        with os.scandir(folder) as found:
            return sorted(each.name for each in found if each.is_dir() and not is_draft(each))
    except (FileNotFoundError, NotADirectoryError):
        return []


def list_folders(folder: Path) -> list[Path]:
    """Return where the checkpoints in a folder lie, by name; none of them is read."""
    return [folder / name for name in list_names(folder)]


def find_batch(folder: Path) -> int | None:
    """Return the batch that a kept checkpoint's folder is named after; None for other names."""
    return find_number(folder.name)


def find_number(name: str) -> int | None:
    """Return the batch in the name of a kept checkpoint; None for other names."""
    number = name.removeprefix(_PREFIX)
    return int(number) if name.startswith(_PREFIX) and number.isdigit() else None


def read_kept(folder: Path) -> Checkpoint:
    """Return the kept checkpoint or savepoint that a folder is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    return describe_checkpoint(folder, read_manifest(folder), pinned=(folder / _PINNED).is_file())


def find(folder: Path, checkpoint: str) -> Checkpoint | None:
    """Return a checkpoint by its id (`chk-17`, or `17`), or None if it is not kept."""
    wanted = f"{_PREFIX}{checkpoint}" if checkpoint.isdigit() else checkpoint
    return next((each for each in list_kept(folder) if each.id == wanted), None)


def get(folder: Path, checkpoint: str, *, job: str) -> Checkpoint:
    """Return a checkpoint by its id, or refuse with those that there are.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND.
    """
    found = find(folder, checkpoint)
    if found is not None:
        return found
    ids = [each.id for each in reversed(list_kept(folder))]
    near = difflib.get_close_matches(checkpoint, ids, n=1) or ids[:1]
    raise HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot find checkpoint {checkpoint!r} of job {job!r}: "
        + (f"it has {', '.join(ids)}" if ids else "it has none yet"),
        hint=f"headgate checkpoints {job} show {near[0]}"
        if near
        else f"headgate checkpoints {job}",
    )


def pin(folder: Path, *, job: str) -> None:
    """Make a checkpoint stay, whatever is retained, until it is unpinned.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it was removed meanwhile.
    """
    try:
        (folder / _PINNED).touch()
    except FileNotFoundError as error:
        raise _removed("pin", folder, job) from error
    if not folder.is_dir():
        raise _removed("pin", folder, job)


def unpin(folder: Path) -> None:
    """Let a checkpoint go when its time comes."""
    (folder / _PINNED).unlink(missing_ok=True)


@contextlib.contextmanager
def hold(folder: Path, *, job: str) -> Iterator[None]:
    """Keep a checkpoint from being removed meanwhile; several processes may hold it.

    A process that is killed lets go of it.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it was removed meanwhile.
    """
    try:
        descriptor = os.open(folder / _HELD, os.O_RDWR | os.O_CREAT, 0o644)
    except FileNotFoundError as error:
        raise _removed("hold", folder, job) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        # Retention may have taken the folder away between the two.
        if not _is_at(descriptor, folder / _HELD):
            raise _removed("hold", folder, job)
        yield
    finally:
        os.close(descriptor)


def remove(folder: Path) -> bool:
    """Remove a checkpoint, unless it is pinned or held; return whether it is gone."""
    gone = remove_tree(folder, unless=_is_needed)
    if gone:
        # It names thousands of files: those of a job that runs for weeks were most of its memory.
        forget_parsed(folder)
    return gone


def _removed(verb: str, folder: Path, job: str) -> HeadgateError:
    return HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot {verb} {folder.name}: it was removed meanwhile",
        hint=f"headgate checkpoints {job}",
    )


def _is_needed(folder: Path) -> bool:
    """Tell whether a checkpoint is pinned, or a process holds it."""
    if (folder / _PINNED).exists():
        return True
    try:
        descriptor = os.open(folder / _HELD, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _never_changes(file: str) -> bool:
    """Tell whether a name is given to one content only: state files carry a unique id."""
    return file.startswith("state/") and "/_metadata/" not in file


def _find_files_before(into: Path, batch: int) -> Mapping[str, FileFacts]:
    """Return the files of the newest checkpoint before a batch; only its manifest is read."""
    numbers = (find_number(name) for name in list_names(into))
    before = (number for number in numbers if number is not None and number < batch)
    for number in sorted(before, reverse=True):
        try:
            return read_manifest(into / f"{_PREFIX}{number}").files
        except HeadgateError:
            continue
    return {}


def _find_at(folder: Path) -> Checkpoint | None:
    try:
        return read_kept(folder)
    except HeadgateError:
        return None
