"""Spark's state folder: the files of one version of one store (seen in 4.3.0)."""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator

from headgate._locations import Location, url_of
from headgate.checkpoints._changelogs import BadChangelogError, read_lineage
from headgate.checkpoints._checksums import sums_names
from headgate.checkpoints.problems import Problem, gone
from headgate.checkpoints.stores import Files

_OPERATOR_METADATA = re.compile(r"state/(\d+)/_metadata/v2/\d+")
# Spark's names of state files: a number and a UUID.
_UNIQUE_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,200}")
# The head of a changelog, which has its lineage, is seldom longer.
_HEAD = 1 << 16


def sums_of(files: Files, file: str) -> Iterator[str]:
    """Yield the checksum files beside a file: Spark's, and Hadoop's."""
    return (sums for sums in sums_names(file) if files.has(sums))


def is_bound_to_place(file: str) -> bool:
    """Return True if a file contains the checkpoint's path and must change with it."""
    return _OPERATOR_METADATA.fullmatch(file) is not None


def moved(content: str, file: str, into: Location) -> str:
    """Return the content of such a file for another folder.

    Spark writes the absolute paths of schema files into `state/OP/_metadata/v2/B` and reads them
    from there, so a moved folder would not find them.
    """
    version, _, text = content.partition("\n")
    metadata = json.loads(text)
    for store in metadata["stateStoreInfo"]:
        store["stateSchemaFilePaths"] = [
            # As Hadoop writes a local path: without escapes.
            url_of(into / _schema_file(file, path))
            for path in store.get("stateSchemaFilePaths", [])
        ]
    return f"{version}\n{json.dumps(metadata, separators=(',', ':'))}"


def survey_operator(
    root: Files, operator: int, batch: int, files: set[str], problems: list[Problem]
) -> None:
    """Add the description of an operator's state: the newest metadata up to a batch."""
    folder = f"state/{operator}/_metadata/v2"
    batches = [int(name) for name in root.children(folder) if name.isdigit()]
    newest = max((number for number in batches if number <= batch), default=None)
    plain = f"state/{operator}/_metadata/metadata"
    if root.has(plain):
        files |= {plain, *sums_of(root, plain)}
    elif newest is None:
        problems.append(gone(f"{folder}/{min(batches, default=0)}"))
    files.update(_find_own_schemas(root, f"state/{operator}/0"))
    if newest is None:
        return
    file = f"{folder}/{newest}"
    files |= {file, *sums_of(root, file)}
    try:
        metadata = json.loads(root.read(file).decode().partition("\n")[2])
        named = [
            _schema_file(file, path)
            for store in metadata["stateStoreInfo"]
            for path in store.get("stateSchemaFilePaths", [])
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        problems.append(Problem(file, f"it does not parse: {error}"))
        return
    for schema_file in named:
        if root.has(schema_file):
            files |= {schema_file, *sums_of(root, schema_file)}
        else:
            problems.append(gone(schema_file))


def survey_stores(
    root: Files,
    ids: Iterable[tuple[str, str]],
    version: int,
    files: set[str],
    problems: list[Problem],
) -> None:
    """Add the files of one version of stores: a snapshot of each, and the changelogs after it.

    Args:
        ids: The folder of a partition, which contains a store or a folder with the store; and the
            unique id of the version.
    """
    changelogs, snapshots = [], []
    for folder, unique in ids:
        if not _UNIQUE_ID.fullmatch(unique):
            problems.append(Problem(f"commits/{version - 1}", f"{unique!r} is not an id of state"))
            continue
        store = _find_store(root, folder, f"{version}_{unique}")
        if root.has(f"{store}/{version}_{unique}.zip"):
            snapshots.append(f"{store}/{version}_{unique}.zip")
        elif root.has(f"{store}/{version}_{unique}.changelog"):
            changelogs.append((store, unique))
        else:
            problems.append(gone(f"{store}/{version}_{unique}.changelog"))
    root.prepare(
        (f"{store}/{version}_{unique}.changelog" for store, unique in changelogs), most=_HEAD
    )
    for store, unique in changelogs:
        changelog = f"{store}/{version}_{unique}.changelog"
        try:
            with root.open(changelog) as content:
                lineage = {**read_lineage(content), version: unique}
        except BadChangelogError as error:
            problems.append(Problem(changelog, str(error)))
            continue
        snapshot = _survey_lineage(root, store, lineage, version, files, problems)
        if snapshot is not None:
            snapshots.append(snapshot)
    root.prepare(snapshots)
    for snapshot in snapshots:
        _survey_snapshot(root, snapshot, files, problems)


def _find_own_schemas(root: Files, partition: str) -> Iterator[str]:
    """Yield the schemas of Spark's own operators, which are in the first partition."""
    for folder in (partition, *(f"{partition}/{name}" for name in root.children(partition))):
        named = (f"{folder}/_metadata/{name}" for name in root.children(f"{folder}/_metadata"))
        yield from (file for file in named if root.has(file))


def _survey_lineage(
    root: Files,
    store: str,
    lineage: dict[int, str],
    version: int,
    files: set[str],
    problems: list[Problem],
) -> str | None:
    """Walk back from a version, and return the newest snapshot of its lineage; None for none."""
    while version > 0:
        unique = lineage.get(version)
        if unique is None or not _UNIQUE_ID.fullmatch(unique):
            top = f"{store}/{max(lineage)}_{lineage[max(lineage)]}.changelog"
            problems.append(Problem(top, f"its lineage lacks version {version}"))
            return None
        snapshot = f"{store}/{version}_{unique}.zip"
        if root.has(snapshot):
            return snapshot
        changelog = f"{store}/{version}_{unique}.changelog"
        if root.has(changelog):
            files |= {changelog, *sums_of(root, changelog)}
        else:
            problems.append(gone(changelog))
            return None
        version -= 1
    return None


def _survey_snapshot(root: Files, snapshot: str, files: set[str], problems: list[Problem]) -> None:
    store = snapshot.rpartition("/")[0]
    files |= {snapshot, *sums_of(root, snapshot)}
    try:
        named = _read_snapshot(root.read(snapshot))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problems.append(Problem(snapshot, f"it does not parse: {error}"))
        return
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        problems.append(Problem(snapshot, f"it is not a zip file: {error}"))
        return
    for name, size in named.items():
        file = f"{store}/{name}"
        try:
            actual = root.size(file)
        except FileNotFoundError:
            problems.append(gone(file))
            continue
        files |= {file, *sums_of(root, file)}
        if actual != size:
            problems.append(Problem(file, f"it has {actual} bytes, and the snapshot names {size}"))


def _read_snapshot(content: bytes) -> dict[str, int]:
    """Return the size of every file that a snapshot names, relative to the store's folder."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        version, _, text = archive.read("metadata").decode().partition("\n")
    if version != "v1":
        raise ValueError(f"its metadata has version {version!r}")
    metadata = json.loads(text)
    kinds = (("sstFiles", "dfsSstFileName", "SSTs"), ("logFiles", "dfsLogFileName", "logs"))
    return {
        f"{folder}/{_plain(entry[name])}": int(entry["sizeBytes"])
        for kind, name, folder in kinds
        for entry in metadata.get(kind) or []
    }


def _find_store(root: Files, folder: str, name: str) -> str:
    """Return the folder of a state file: the partition's own, or a named store's."""

    def has(store: str) -> bool:
        return any(root.has(f"{store}/{name}.{kind}") for kind in ("zip", "changelog"))

    if has(folder):
        return folder
    named = (f"{folder}/{child}" for child in root.children(folder))
    return next((store for store in named if has(store)), folder)


def _schema_file(file: str, path: str) -> str:
    """Return the path of a schema file in the checkpoint, even if that was moved."""
    match = _OPERATOR_METADATA.fullmatch(file)
    inside = f"/state/{match[1] if match else ''}/_stateSchema/"
    _, separator, rest = path.rpartition(inside)
    if not separator or not all(_PLAIN_NAME.fullmatch(part) for part in rest.split("/")):
        raise ValueError(f"{path!r} is not the path of a schema file")
    return inside[1:] + rest


def _plain(name: str) -> str:
    if not _PLAIN_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a file name")
    return name
