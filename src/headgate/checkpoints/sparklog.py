"""Spark's checkpoint folder as files: its layout, as seen in 4.3.0.

offsets/N, commits/N      batch N was begun, and committed; commits name the unique ids of state
metadata                  the query's id
sources/NAME/…            what a source wrote for itself; these and the above with NAME.crc beside
state/OP/_metadata/v2/B   what operator OP holds, written at the first batch of each start
state/OP/_stateSchema/…   the schemas that those files name, by absolute path
state/OP/PART[/STORE]/    V_ID.changelog and V_ID.zip of state version V (batch V-1), with
                          SSTs/NAME.sst, which the zip's own `metadata` names
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate._locations import Location
from headgate.checkpoints import _stores
from headgate.checkpoints.problems import Problem, gone, refuse
from headgate.checkpoints.stores import Files, files_at
from headgate.errors import HeadgateError, StoreError

METADATA = "metadata"
# The folder with a folder for each source, in which it keeps what it needs.
SOURCES = "sources"
# A page of a folder's ledger, or its checksum, by the numbers of its files.
_PAGE = re.compile(
    r"(?P<folder>sources/[^/]+)/ledger-v1-(?P<first>[0-9]{12})-(?P<end>[0-9]{12})\.json(?:\.crc)?"
)
_VOID = "-"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_CODEC = "spark.sql.streaming.stateStore.compression.codec"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch at its start: the end positions of every source.

    Attributes:
        positions: As JSON text, by the source's name in Spark; None before its first record.
            Includes the clocks of timed streams, whose names no source has.
        conf: The settings that Spark fixes for the life of the query.
    """

    positions: Mapping[str, str | None]
    watermark_ms: int
    timestamp_ms: int
    conf: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Commit:
    """The result of a committed batch.

    Attributes:
        watermark_ms: The watermark of the next batch; 0 before the first.
        state_ids: Unique ids of its state, by operator, then partition, then store.
    """

    watermark_ms: int
    state_ids: Mapping[int, tuple[tuple[str, ...], ...]]


@dataclass(frozen=True, slots=True)
class Survey:
    """The files that a batch needs, as far as they exist.

    Attributes:
        files: Relative to the checkpoint's folder, sorted.
        problems: Empty if and only if nothing is missing or unreadable.
    """

    files: tuple[str, ...]
    problems: tuple[Problem, ...]


def find_last_commit(checkpoint: Location) -> int | None:
    """Return the newest committed batch, or None before the first."""
    return max(_numbers(checkpoint, "commits"), default=None)


def find_begun(checkpoint: Location) -> int | None:
    """Return the newest begun batch, or None before the first."""
    return max(_numbers(checkpoint, "offsets"), default=None)


def find_open_batch(checkpoint: Location) -> int | None:
    """Return the batch that was begun and not committed, which Spark repeats at a start."""
    begun = find_begun(checkpoint)
    done = find_last_commit(checkpoint)
    return begun if begun is not None and (done is None or begun > done) else None


def list_commits(checkpoint: Location) -> list[int]:
    """Return the committed batches that are still stored, oldest first."""
    return sorted(_numbers(checkpoint, "commits"))


def read_offsets(checkpoint: Location, batch: int) -> dict[str, str | None]:
    """Return the end position of a batch in every source: JSON text, by the source's name in Spark.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED, naming the file.
    """
    return dict(read_batch(checkpoint, batch).positions)


def read_batch(checkpoint: Location, batch: int) -> Batch:
    """Return a batch at its start.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED, naming the file.
    """
    return _read_batch(files_at(checkpoint), batch)


def _read_batch(files: Files, batch: int) -> Batch:
    file = f"offsets/{batch}"
    try:
        head, *lines = _versioned(files.read(file), newest=2)
        content = json.loads(head)
        named = [line.partition(":") for line in lines if line.strip()]
        if not all(colon for _, colon, _ in named):
            raise ValueError("a source without a name")
        positions = {name: None if text == _VOID else text for name, _, text in named}
        for text in positions.values():
            json.loads(text or "null")
        return Batch(
            positions,
            watermark_ms=int(content["batchWatermarkMs"]),
            timestamp_ms=int(content["batchTimestampMs"]),
            conf={str(key): str(value) for key, value in content["conf"].items()},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _unreadable(files.root, batch, file, error) from error


def read_commit(checkpoint: Location, batch: int) -> Commit:
    """Return the result of a committed batch.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED, naming the file.
    """
    return _read_commit(files_at(checkpoint), batch)


def _read_commit(files: Files, batch: int) -> Commit:
    file = f"commits/{batch}"
    try:
        lines = _versioned(files.read(file), newest=3)
        content = json.loads(lines[0])
        ids = content.get("stateUniqueIds") or {}
        return Commit(
            watermark_ms=int(content["nextBatchWatermarkMs"]),
            state_ids={
                int(operator): tuple(tuple(_texts(stores)) for stores in partitions)
                for operator, partitions in ids.items()
            },
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise _unreadable(files.root, batch, file, error) from error


def files_of(checkpoint: Location, batch: int) -> list[str]:
    """Return exactly the files that a resume after a batch needs, relative to the folder.

    These are the logs of the batch and its predecessor, the files of sources, and for each
    partition of state the newest snapshot of this lineage with the changelogs after it.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED, naming the first file.
    """
    return files_in(files_at(checkpoint), batch)


def files_in(present: Files, batch: int) -> list[str]:
    """Return what `files_of` does, of files that are listed already."""
    needed = survey_files(present, batch)
    if needed.problems:
        raise refuse(
            f"cannot use batch {batch}", needed.problems, present.root, hint=_hint(present.root)
        )
    return list(needed.files)


def survey(checkpoint: Location, batch: int) -> Survey:
    """Return the files that a batch needs and their problems; never raises for corruption."""
    return survey_files(files_at(checkpoint), batch)


def survey_files(present: Files, batch: int) -> Survey:
    """Return what `survey` does, of files that are listed already."""
    files: set[str] = set()
    problems: list[Problem] = []
    needed = [METADATA, f"offsets/{batch}", f"commits/{batch}"]
    if batch > 0:
        # Spark reads the batch before the last to find the start of the last.
        needed += [f"offsets/{batch - 1}", f"commits/{batch - 1}"]
    for file in needed:
        if present.has(file):
            files |= {file, *_stores.sums_of(present, file)}
        else:
            problems.append(gone(file))
    present.prepare(needed)
    problems += _find_metadata_problem(present)
    try:
        # A file in the making has a hidden name, and soon another one.
        own = without_covered(present.walk(SOURCES))
        files.update(file for file in own if not file.rpartition("/")[2].startswith("."))
        if not problems:
            _survey_state(present, batch, files, problems)
    except OSError as error:
        name = _name(str(present.root), error)
        problems.append(Problem(name, str(error.strerror or error)))
    return Survey(tuple(sorted(files)), tuple(dict.fromkeys(problems)))


def without_covered(files: Sequence[str]) -> list[str]:
    """Return the files of sources without pages of ledgers that a longer page covers.

    Nothing reads those any more, and a driver removes them at some time.
    """
    pages: dict[str, list[tuple[int, int]]] = {}
    for file in files:
        if page := _PAGE.fullmatch(file):
            pages.setdefault(page["folder"], []).append((int(page["first"]), int(page["end"])))
    covered = {
        (folder, page)
        for folder, bounds in pages.items()
        for page in bounds
        if any(other[0] <= page[0] and page[1] <= other[1] and other != page for other in bounds)
    }

    def is_covered(file: str) -> bool:
        page = _PAGE.fullmatch(file)
        if page is None:
            return False
        return (page["folder"], (int(page["first"]), int(page["end"]))) in covered

    return [file for file in files if not is_covered(file)]


def read_query_id(checkpoint: Location) -> str:
    """Return Spark's id of the query."""
    return _read_query_id(files_at(checkpoint))


def _read_query_id(files: Files) -> str:
    try:
        return str(json.loads(files.read(METADATA))["id"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _unreadable(files.root, None, METADATA, error) from error


def render_query_id(query_id: str) -> str:
    """Return the content of Spark's metadata file for a query id."""
    return json.dumps({"id": query_id}, separators=(",", ":"))


def find_start(checkpoint: Location, source: str) -> str | None:
    """Return the start position of a source, as its gate recorded it; None if it did not.

    Args:
        source: The source's name in Spark.
    """
    return _find_noted(checkpoint, source, "start-v1.json")


def find_load_target(checkpoint: Location, source: str) -> str | None:
    """Return the end of a table's initial load, as its gate recorded it; None if it did not.

    Args:
        source: The source's name in Spark.
    """
    return _find_noted(checkpoint, source, "load-target-v1.json")


def _find_noted(checkpoint: Location, source: str, name: str) -> str | None:
    try:
        return files_at(checkpoint).read(f"{SOURCES}/{source}/{name}").decode()
    except FileNotFoundError:
        return None


def _survey_state(present: Files, batch: int, files: set[str], problems: list[Problem]) -> None:
    try:
        begun, commit = _read_batch(present, batch), _read_commit(present, batch)
        if batch > 0:
            _read_batch(present, batch - 1)
            _read_commit(present, batch - 1)
    except StoreError:
        raise
    except HeadgateError as error:
        problems.append(_problem_of(error))
        return
    if not commit.state_ids:
        if present.children("state"):
            problems.append(
                Problem(f"commits/{batch}", "it names no state, although the query has state")
            )
        return
    if begun.conf.get(_CODEC, "lz4") != "lz4" or "RocksDB" not in begun.conf.get(_PROVIDER, ""):
        problems.append(Problem(f"offsets/{batch}", "its state must be RocksDB with lz4"))
        return
    for operator in commit.state_ids:
        _stores.survey_operator(present, operator, batch, files, problems)
    ids = [
        (f"state/{operator}/{partition}", unique)
        for operator, partitions in commit.state_ids.items()
        for partition, stores in enumerate(partitions)
        for unique in stores
    ]
    _stores.survey_stores(present, ids, batch + 1, files, problems)


def _find_metadata_problem(present: Files) -> Iterator[Problem]:
    if present.has(METADATA):
        try:
            _read_query_id(present)
        except StoreError:
            raise
        except HeadgateError as error:
            yield _problem_of(error)


class _FileError(HeadgateError):
    """Carries the file, so that a survey can name it."""

    problem: Problem


def _problem_of(error: HeadgateError) -> Problem:
    if isinstance(error, _FileError):
        return error.problem
    return Problem("", error.message)


def _unreadable(checkpoint: Location, batch: int | None, file: str, error: Exception) -> _FileError:
    missing = isinstance(error, FileNotFoundError)
    problem = gone(file) if missing else Problem(file, f"it does not parse: {error}")
    what = "cannot read the checkpoint" if batch is None else f"cannot read batch {batch}"
    refusal = refuse(what, [problem], checkpoint, hint=_hint(checkpoint))
    failure = _FileError(refusal.code, refusal.message, hint=refusal.hint)
    failure.problem = problem
    return failure


def _hint(checkpoint: Location) -> str:
    return f"headgate verify {checkpoint}"


def _versioned(content: bytes, *, newest: int) -> list[str]:
    """Return the lines of one of Spark's logs after the version line."""
    version, *lines = content.decode().split("\n")
    if not version.startswith("v") or not version[1:].isdigit():
        raise ValueError("its first line is not a version")
    if int(version[1:]) > newest:
        raise ValueError(f"its version is {version}, and this release reads up to v{newest}")
    if not lines:
        raise ValueError("it is truncated")
    return lines


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("state ids must be texts")
    return values


def _name(checkpoint: str, error: OSError) -> str:
    return str(error.filename or "").removeprefix(f"{checkpoint}/")


def _numbers(checkpoint: Location, folder: str) -> list[int]:
    return [int(name) for name in files_at(checkpoint).children(folder) if name.isdigit()]
