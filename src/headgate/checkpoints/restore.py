"""Creates a new checkpoint folder for Spark from a retained checkpoint, which is unchanged."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from headgate._locations import Location
from headgate.checkpoints import manifest as manifests
from headgate.checkpoints._checksums import sums_names
from headgate.checkpoints._stores import is_bound_to_place, moved
from headgate.checkpoints.log_sums import is_summed, render_sums, sums_name
from headgate.checkpoints.manifest import Manifest
from headgate.checkpoints.problems import Problem, refuse
from headgate.checkpoints.sparklog import METADATA, files_in, render_query_id
from headgate.checkpoints.stores import Files, files_at, place_at
from headgate.checkpoints.verify import verify_batch, verify_manifest


def fork(source: Location, into: Location, *, quick: bool = False) -> Manifest:
    """Create a folder from which Spark resumes after a retained checkpoint or a savepoint.

    Files are linked if the file system allows it. The source never changes, since Spark does not
    write into existing files. The folder appears complete or not at all.

    Args:
        source: The folder of the retained checkpoint or the savepoint.
        into: Must not exist. Spark's files contain its absolute path, so it cannot be moved later.
        quick: Check names and sizes, and read small files only, before it is used.

    Returns:
        What the source says of itself.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND, CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED,
            CHECKPOINT_EXISTS or CHECKPOINT_NOT_WRITTEN.
    """
    manifest = manifests.read(source)
    what = f"cannot restore from {_called(source, manifest)} of job {manifest.facts.job!r}"
    problems = verify_manifest(source, manifest, quick=quick)
    if problems:
        raise refuse(what, problems, source, hint=f"headgate checkpoints {manifest.facts.job}")
    # The files that the batch needs: those of the manifest, unless the manifest is older.
    present = files_at(source)
    _fork(present, files_in(present, manifest.batch), into, what)
    return manifest


def fork_batch(checkpoint: Location, batch: int, into: Location, *, quick: bool = False) -> None:
    """Create a folder from which Spark resumes after a batch of another of its folders.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE, CHECKPOINT_DAMAGED, CHECKPOINT_EXISTS or
            CHECKPOINT_NOT_WRITTEN.
    """
    what = f"cannot restore from batch {batch}"
    problems = verify_batch(checkpoint, batch, quick=quick)
    if problems:
        raise refuse(what, problems, checkpoint, hint=f"headgate verify {checkpoint}")
    present = files_at(checkpoint)
    _fork(present, files_in(present, batch), into, what)


def _fork(source: Files, files: Sequence[str], into: Location, what: str) -> None:
    changed = {METADATA: render_query_id(str(uuid.uuid4()))}
    for file in files:
        if is_bound_to_place(file):
            changed[file] = _moved(source, file, into, what)
    stale = {sums for file in changed for sums in sums_names(file)}
    brought = [file for file in files if file not in changed and file not in stale]
    there = set(brought)
    with place_at(into).publishing() as draft:
        draft.bring(source, brought)
        for file, content in changed.items():
            draft.write(file, content)
        # For folders of release 0.7 too: later checks may require every checksum.
        for file in files:
            if is_summed(file) and sums_name(file) not in there:
                known = changed.get(file)
                sums = render_sums(source.read(file) if known is None else known.encode())
                draft.write(sums_name(file), sums)


def _moved(source: Files, file: str, into: Location, what: str) -> str:
    try:
        return moved(source.read(file).decode(), file, into)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = Problem(file, f"it does not parse: {error}")
        raise refuse(what, [problem], source.root, hint=f"headgate verify {source.root}") from error


def _called(source: Location, manifest: Manifest) -> str:
    if manifest.kind is manifests.Kind.SAVEPOINT:
        return f"savepoint {source.name}"
    return f"checkpoint {manifest.batch}"
