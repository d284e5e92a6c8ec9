"""The kept checkpoints of a run: linked out of Spark's folder, listed, pinned, removed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from headgate._clock import Clock, Stopwatch, SystemClock
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._checksums import sums_names
from headgate.checkpoints.checkpoint import Checkpoint, describe_checkpoint
from headgate.checkpoints.manifest import FILE_NAMES, CheckpointFacts, FileFacts, Kind, Manifest
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.sparklog import files_of
from headgate.checkpoints.storage import is_draft, link_files, publishing, remove_tree, sha256_of
from headgate.errors import HeadgateError

_PINNED = "pinned"
# Empty; a process that needs the checkpoint for a while has a lock on it.
_HELD = "held"
_PREFIX = "chk-"
_MOST_PARSED = 256

# Parsed manifests with the state of their files, by folder; the least recently used comes first.
_parsed: OrderedDict[Path, tuple[tuple[int, ...], Manifest]] = OrderedDict()
_parsing = threading.Lock()


def keep(
    run_checkpoint: Path,
    batch: int,
    into: Path,
    facts: CheckpointFacts,
    *,
    clock: Clock | None = None,
) -> Checkpoint:
    """Link a committed batch out of Spark's folder, while the query runs on.

    The cost follows the change: state files never change, so that those which the kept checkpoint
    before has are taken over with their checksums. A batch that is kept already is returned as
    it is.

    Args:
        into: The folder of the run's kept checkpoints; this one appears as `chk-N` in it, whole.
        clock: Measures how long it takes.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED or CHECKPOINT_NOT_WRITTEN.
    """
    watch = Stopwatch(clock or SystemClock())
    folder = into / f"{_PREFIX}{batch}"
    known = _find_at(folder)
    if known is not None:
        return known
    before = _find_files_before(into, batch)
    files = files_of(run_checkpoint, batch)
    # A checkpoint with a corrupted manifest is replaced, since its batch is still here.
    remove_tree(folder)
    with publishing(folder) as draft:
        link_files(run_checkpoint, files, draft)
        facts_of = describe(draft, files, before=before)
        new = sum(file_facts.size for file, file_facts in facts_of.items() if file not in before)
        manifest = write_manifest(
            draft, Kind.CHECKPOINT, batch, facts, facts_of, new_bytes=new, took=watch.elapsed()
        )
    return describe_checkpoint(folder, manifest)


def write_manifest(
    folder: Path,
    kind: Kind,
    batch: int,
    facts: CheckpointFacts,
    files: Mapping[str, FileFacts],
    *,
    took: timedelta,
    new_bytes: int | None = None,
) -> Manifest:
    """Write and return the manifest of a folder that is about to be published.

    Args:
        took: The time since the checkpoint or savepoint was begun.
        new_bytes: The size of the files that the checkpoint before does not have; all if left out.
    """
    size = sum(file.size for file in files.values())
    manifest = Manifest(
        kind=kind,
        batch=batch,
        facts=facts,
        full_bytes=size,
        new_bytes=size if new_bytes is None else new_bytes,
        files=files,
        took=took,
    )
    (folder / FILE_NAMES[kind]).write_text(manifests.render(manifest), encoding="utf-8")
    return manifest


def describe(
    folder: Path, files: Sequence[str], *, before: Mapping[str, FileFacts], thorough: bool = False
) -> dict[str, FileFacts]:
    """Return size and checksum of files.

    Args:
        before: Of the checkpoint before: what it has of the same state files is taken over.
        thorough: Compute a checksum of every file, also where Spark's own lies beside it.
    """
    names = set(files)
    described = {}
    for file in files:
        size = (folder / file).stat().st_size
        known = before.get(file)
        if known is not None and known.size == size and _never_changes(file):
            described[file] = known
            continue
        summed = not thorough and not names.isdisjoint(sums_names(file))
        described[file] = FileFacts(size, None if summed else sha256_of(folder / file))
    return described


def list_kept(folder: Path) -> list[Checkpoint]:
    """Return the checkpoints in a folder, oldest first; what cannot be read is left out."""
    return list_all(folder)[0]


def list_all(folder: Path) -> tuple[list[Checkpoint], list[Problem]]:
    """Return the checkpoints in a folder, oldest first, and those whose manifest does not read."""
    kept, problems = [], []
    for name in list_names(folder):
        try:
            kept.append(read_kept(folder / name))
        except HeadgateError as error:
            problems.append(Problem(name, error.message))
    return sorted(
        kept, key=lambda checkpoint: (checkpoint.batch, checkpoint.completed_at, checkpoint.id)
    ), problems


def list_names(folder: Path) -> list[str]:
    """Return the names of the checkpoints' folders in a folder; none of them is read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not is_draft(entry))
    except (FileNotFoundError, NotADirectoryError):
        return []


def find_batch(name: str) -> int | None:
    """Return the batch in the name of a kept checkpoint's folder; None for other names."""
    number = name.removeprefix(_PREFIX)
    return int(number) if name.startswith(_PREFIX) and number.isdigit() else None


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a kept checkpoint or a savepoint; callers must not change it.

    It is parsed once in a process, for as long as its file stays as it is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    try:
        file = manifests.find_file(folder)
        status = None if file is None else file.stat()
    except OSError:
        status = None
    if status is None:
        return manifests.read(folder)
    mark = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    with _parsing:
        known = _parsed.get(folder)
        if known is not None and known[0] == mark:
            _parsed.move_to_end(folder)
            return known[1]
    manifest = manifests.read(folder)
    with _parsing:
        _parsed[folder] = (mark, manifest)
        while len(_parsed) > _MOST_PARSED:
            _parsed.popitem(last=False)
    return manifest


def read_kept(folder: Path) -> Checkpoint:
    """Return the kept checkpoint or savepoint that a folder is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    return describe_checkpoint(folder, read_manifest(folder), pinned=(folder / _PINNED).is_file())


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
        # A manifest names thousands of files, and a job may run for weeks.
        with _parsing:
            _parsed.pop(folder, None)
    return gone


def _removed(verb: str, folder: Path, job: str) -> HeadgateError:
    return HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot {verb} {folder.name}: it was removed meanwhile",
        hint=f"headgate checkpoints {job}",
    )


def _is_needed(folder: Path) -> bool:
    """Tell whether a checkpoint is pinned, or a process holds it."""
    return (folder / _PINNED).exists() or is_held(folder)


def is_held(folder: Path) -> bool:
    """Return True if a process holds a checkpoint."""
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
    numbers = (find_batch(name) for name in list_names(into))
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
