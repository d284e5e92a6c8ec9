"""The kept checkpoints of a run: linked out of Spark's folder, listed, pinned, removed."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from headgate._clock import Clock, Stopwatch, SystemClock
from headgate._locations import Location, is_local
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._checksums import sha256_of, sums_names
from headgate.checkpoints.checkpoint import Checkpoint, describe_checkpoint
from headgate.checkpoints.manifest import FILE_NAMES, CheckpointFacts, FileFacts, Kind, Manifest
from headgate.checkpoints.problems import Problem
from headgate.checkpoints.sparklog import files_in
from headgate.checkpoints.stores import Draft, Entry, Files, files_at, place_at
from headgate.checkpoints.stores.place import PREFIX
from headgate.errors import HeadgateError, StoreError

_MOST_PARSED = 256

# Parsed manifests with the state of their files, by folder; the least recently used comes first.
_parsed: OrderedDict[Location, tuple[Hashable, Manifest]] = OrderedDict()
_parsing = threading.Lock()


def keep(
    run_checkpoint: Location,
    batch: int,
    into: Location,
    facts: CheckpointFacts,
    *,
    clock: Clock | None = None,
    check: Callable[[], None] = lambda: None,
) -> Checkpoint:
    """Link a committed batch out of Spark's folder, while the query runs on.

    The cost follows the change: state files never change, so that those which the kept checkpoint
    before has are taken over with their checksums. A batch that is kept already is returned as
    it is.

    Args:
        into: The folder of the run's kept checkpoints; this one appears as `chk-N` in it, whole.
        clock: Measures how long it takes.
        check: Raises once another process may be keeping checkpoints of the run.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED or CHECKPOINT_NOT_WRITTEN.
    """
    watch = Stopwatch(clock or SystemClock())
    folder = into / f"{PREFIX}{batch}"
    known = _find_at(folder)
    if known is not None:
        return known
    before = _find_files_before(into, batch)
    present = files_at(run_checkpoint)
    files = files_in(present, batch)
    place = place_at(folder)
    # A checkpoint with a corrupted manifest is replaced, since its batch is still here.
    place.remove_tree()
    with place.publishing(shared=True) as draft:
        draft.bring(present, files, known={file: known.size for file, known in before.items()})
        facts_of = describe(draft.files, files, before=before)
        new = sum(file_facts.size for file, file_facts in facts_of.items() if file not in before)
        manifest = write_manifest(
            draft, Kind.CHECKPOINT, batch, facts, facts_of, new_bytes=new, took=watch.elapsed()
        )
        # On a store, a process that takes the run over sweeps the files that no manifest names.
        check()
    try:
        check()
    except HeadgateError:
        place.remove_tree()
        raise
    return describe_checkpoint(folder, manifest)


def write_manifest(
    draft: Draft,
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
    draft.write(FILE_NAMES[kind], manifests.render(manifest))
    return manifest


def describe(
    present: Files,
    files: Sequence[str],
    *,
    before: Mapping[str, FileFacts],
    thorough: bool = False,
) -> dict[str, FileFacts]:
    """Return size and checksum of files.

    Args:
        before: Of the checkpoint before: what it has of the same state files is taken over.
        thorough: Compute a checksum of every file, also where Spark's own lies beside it.
    """
    names = set(files)
    described: dict[str, FileFacts] = {}
    unknown = []
    for file in files:
        size = present.size(file)
        known = before.get(file)
        if known is not None and known.size == size and _never_changes(file):
            described[file] = known
            continue
        described[file] = FileFacts(size, None)
        if thorough or not (_is_summed(file, names) or _is_costly(present, file)):
            unknown.append(file)
    present.prepare(unknown)
    for file in unknown:
        described[file] = FileFacts(described[file].size, sha256_of(present, file))
    return described


def list_kept(folder: Location) -> list[Checkpoint]:
    """Return the checkpoints in a folder, oldest first; what cannot be read is left out."""
    return list_all(folder)[0]


def list_all(folder: Location) -> tuple[list[Checkpoint], list[Problem]]:
    """Return the checkpoints in a folder, oldest first, and those whose manifest does not read."""
    kept, problems = [], []
    entries = place_at(folder).list_entries()
    manifests_of = _read_manifests(folder, entries)
    for name, entry in entries.items():
        try:
            if entry is None:
                # Says what is missing.
                manifests.read(folder / name)
            manifest = manifests_of[name]
            if isinstance(manifest, HeadgateError):
                raise manifest
            pinned = entry is not None and entry.pinned
            kept.append(describe_checkpoint(folder / name, manifest, pinned=pinned))
        except StoreError:
            raise
        except HeadgateError as error:
            problems.append(Problem(name, error.message))
    return sorted(
        kept, key=lambda checkpoint: (checkpoint.batch, checkpoint.completed_at, checkpoint.id)
    ), problems


def list_names(folder: Location) -> list[str]:
    """Return the names of the checkpoints' folders in a folder; none of them is read."""
    return place_at(folder).list_names()


def find_batch(name: str) -> int | None:
    """Return the batch in the name of a kept checkpoint's folder; None for other names."""
    number = name.removeprefix(PREFIX)
    return int(number) if name.startswith(PREFIX) and number.isdigit() else None


def read_manifest(folder: Location) -> Manifest:
    """Return the manifest of a kept checkpoint or a savepoint; callers must not change it.

    It is parsed once in a process, for as long as its file stays as it is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    return _read_entry(folder, place_at(folder).find_entry())


def _read_entry(folder: Location, entry: Entry | None) -> Manifest:
    if entry is None:
        return manifests.read(folder)
    manifest = _read_manifests(folder.parent, {folder.name: entry})[folder.name]
    if isinstance(manifest, HeadgateError):
        raise manifest
    return manifest


def _read_manifests(
    folder: Location, entries: Mapping[str, Entry | None]
) -> dict[str, Manifest | HeadgateError]:
    """Return the manifests of folders in a folder by their names, or why they do not read."""
    present = {name: entry for name, entry in entries.items() if entry is not None}
    read: dict[str, Manifest | HeadgateError] = {}
    with _parsing:
        for name, entry in present.items():
            known = _parsed.get(folder / name)
            if known is not None and known[0] == entry.mark:
                _parsed.move_to_end(folder / name)
                read[name] = known[1]
    unknown = [name for name in present if name not in read]
    texts = place_at(folder).read_texts([f"{name}/{present[name].manifest}" for name in unknown])
    for name, text in zip(unknown, texts, strict=True):
        try:
            manifest = manifests.parse_content(folder / name, present[name].manifest, text)
        except StoreError:
            raise
        except HeadgateError as error:
            read[name] = error
            continue
        read[name] = manifest
        with _parsing:
            _parsed[folder / name] = (present[name].mark, manifest)
            while len(_parsed) > _MOST_PARSED:
                _parsed.popitem(last=False)
    return read


def read_kept(folder: Location) -> Checkpoint:
    """Return the kept checkpoint or savepoint that a folder is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    entry = place_at(folder).find_entry()
    manifest = _read_entry(folder, entry)
    return describe_checkpoint(folder, manifest, pinned=entry is not None and entry.pinned)


def pin(folder: Location, *, job: str) -> None:
    """Make a checkpoint stay, whatever is retained, until it is unpinned.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it was removed meanwhile.
    """
    if not place_at(folder).pin():
        raise _removed("pin", folder, job)


def unpin(folder: Location) -> None:
    """Let a checkpoint go when its time comes."""
    place_at(folder).unpin()


@contextlib.contextmanager
def hold(folder: Location, *, job: str) -> Iterator[None]:
    """Keep a checkpoint from being removed meanwhile; several processes may hold it.

    A process that is killed lets go of it, on a store after a minute.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if it was removed meanwhile.
    """
    with place_at(folder).holding() as is_there:
        if not is_there:
            raise _removed("hold", folder, job)
        yield


def remove(folder: Location, *, check: Callable[[], None] = lambda: None) -> bool:
    """Remove a checkpoint, unless it is pinned or held; return whether it is gone.

    Args:
        check: As `keep` takes it.
    """
    gone = place_at(folder).remove(unshared=lambda: _find_unshared(folder), check=check)
    if gone:
        # A manifest names thousands of files, and a job may run for weeks.
        with _parsing:
            _parsed.pop(folder, None)
    return gone


def sweep(folder: Location) -> list[str]:
    """Remove what a crash left beside kept checkpoints; no other process may be writing there.

    Returns:
        The names that were removed.
    """
    return place_at(folder).sweep(lambda: _find_named(folder))


def is_held(folder: Location) -> bool:
    """Return True if a process holds a checkpoint."""
    return place_at(folder).is_held()


def _find_unshared(folder: Location) -> Iterable[str]:
    """Return the files of a checkpoint that no other one of its run has."""
    others = _find_named(folder.parent, but=folder.name)
    try:
        return () if others is None else read_manifest(folder).files.keys() - others
    except StoreError:
        raise
    except HeadgateError:
        return ()


def _find_named(folder: Location, *, but: str = "") -> set[str] | None:
    """Return the files that the checkpoints in a folder name; None if one cannot be read.

    Args:
        but: The name of a checkpoint that does not count.
    """
    entries = {name: one for name, one in place_at(folder).list_entries().items() if name != but}
    named: set[str] = set()
    for manifest in _read_manifests(folder, entries).values():
        if isinstance(manifest, HeadgateError):
            return None
        named.update(manifest.files)
    return named


def _removed(verb: str, folder: Location, job: str) -> HeadgateError:
    return HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot {verb} {folder.name}: it was removed meanwhile",
        hint=f"headgate checkpoints {job}",
    )


def _is_summed(file: str, names: Collection[str]) -> bool:
    """Tell whether a file's checksum is among the files."""
    return any(sums in names for sums in sums_names(file))


def _is_costly(present: Files, file: str) -> bool:
    """Tell whether reading a file is a request of its own, and nothing is known by it.

    A corrupted checksum shows with the file that it is of.
    """
    return file.endswith(".crc") and not is_local(present.root)


def _never_changes(file: str) -> bool:
    """Tell whether a name is given to one content only: state files carry a unique id."""
    return file.startswith("state/") and "/_metadata/" not in file


def _find_files_before(into: Location, batch: int) -> Mapping[str, FileFacts]:
    """Return the files of the newest checkpoint before a batch; only its manifest is read."""
    numbers = (find_batch(name) for name in list_names(into))
    before = (number for number in numbers if number is not None and number < batch)
    for number in sorted(before, reverse=True):
        try:
            return read_manifest(into / f"{PREFIX}{number}").files
        except StoreError:
            raise
        except HeadgateError:
            continue
    return {}


def _find_at(folder: Location) -> Checkpoint | None:
    try:
        return read_kept(folder)
    except StoreError:
        raise
    except HeadgateError:
        return None
