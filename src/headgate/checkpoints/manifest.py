"""The manifest of a kept checkpoint or a savepoint, the only file of ours in its folder."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Annotated, Any

from headgate._codec import Form, JsonValue
from headgate._locations import Location, is_local
from headgate.checkpoints.problems import gone, refuse
from headgate.checkpoints.state_format import FIRST_STATE_FORMAT, STATE_FORMAT
from headgate.checkpoints.stores import place_at
from headgate.checkpoints.stores.place import MANIFESTS
from headgate.errors import HeadgateError, StoreError

# 2 says of what form the state is.
FORMAT = 2
_OLDEST = 1


class Kind(enum.StrEnum):
    """Who keeps a checkpoint: the job, by its settings, or the user."""

    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"


FILE_NAMES = dict(zip(Kind, MANIFESTS, strict=True))


def _parse_position(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# Text in Python and in a manifest; JSON itself wherever a checkpoint is shown.
Position = Annotated[str, Form(_parse_position, json.dumps, shown_as=JsonValue)]


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Where a checkpoint stands in one source.

    Attributes:
        position: As JSON text, None before the first record.
        records: Read since the run began.
    """

    position: Position | None
    records: int


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What one operator holds."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFacts:
    """What is known of a checkpoint beside its files.

    Attributes:
        duration: How long the batch took that the checkpoint ends, with the wait for its records.
        sources: By source id.
        watermark: The flow's; None where it has none yet.
        state: By operator uid.
        parallelism: State partitions.
        operators: Uids of the operators that hold state, in Spark's order.
        tables: Every schema each table has had, as JSON, by source id.
        keys: The key columns of each table, by source id.
        flow: The flow, as JSON.
        state_format: Of what form the operators' state is.
    """

    job: str
    lineage: str
    completed_at: datetime
    duration: timedelta = timedelta(0)
    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    watermark: datetime | None = None
    state: Mapping[str, StateFacts] = field(default_factory=dict)
    parallelism: int
    operators: tuple[str, ...] = ()
    tables: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    flow: Mapping[str, Any] = field(default_factory=dict)
    state_format: int = STATE_FORMAT

    @property
    def has_known_state(self) -> bool:
        """Whether this release reads the state; where no operator holds any, it does."""
        return not self.operators or self.state_format == STATE_FORMAT


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one file was when it was kept.

    Attributes:
        sha256: None where Spark's or Hadoop's own checksum beside the file is what counts.
    """

    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a kept checkpoint or a savepoint says of itself.

    Attributes:
        full_bytes: Of all its files.
        new_bytes: Of the files that the kept checkpoint before it does not have.
        files: By name as seen from the folder.
        took: How long it took to keep the checkpoint or to copy the savepoint; None in manifests of
            older releases.
    """

    kind: Kind
    batch: int
    facts: CheckpointFacts
    full_bytes: int
    new_bytes: int
    files: Mapping[str, FileFacts]
    took: timedelta | None = None

    @property
    def id(self) -> str:
        """The checkpoint's name."""
        return f"chk-{self.batch}"


def render(manifest: Manifest) -> str:
    """Return a manifest as JSON text."""
    facts = manifest.facts
    content = {
        "format": FORMAT,
        "state_format": facts.state_format,
        "id": manifest.id,
        "kind": manifest.kind.value,
        "batch": manifest.batch,
        "job": facts.job,
        "lineage": facts.lineage,
        "completed_at": facts.completed_at.isoformat(),
        "duration_ms": round(facts.duration.total_seconds() * 1000),
        "took_ms": None if manifest.took is None else round(manifest.took.total_seconds() * 1000),
        "watermark": None if facts.watermark is None else facts.watermark.isoformat(),
        "sources": {
            name: {"position": source.position, "records": source.records}
            for name, source in facts.sources.items()
        },
        "state": {
            uid: {"rows": state.rows, "bytes": state.bytes} for uid, state in facts.state.items()
        },
        "full_bytes": manifest.full_bytes,
        "new_bytes": manifest.new_bytes,
        "parallelism": facts.parallelism,
        "operators": list(facts.operators),
        "tables": dict(facts.tables),
        "keys": dict(facts.keys),
        "flow": dict(facts.flow),
        "files": {
            file: [file_facts.size, file_facts.sha256]
            for file, file_facts in manifest.files.items()
        },
    }
    return json.dumps(content, indent=1) + "\n"


def parse(text: str) -> Manifest:
    """Return the manifest that some JSON text is.

    Raises:
        ValueError: It is none, or of a format this release does not know.
    """
    try:
        content = json.loads(text)
        if content["format"] not in range(_OLDEST, FORMAT + 1):
            raise ValueError(
                f"its format is {content['format']!r}, and this release reads {_OLDEST} to {FORMAT}"
            )
        return Manifest(
            kind=Kind(content["kind"]),
            batch=_whole(content["batch"]),
            facts=_facts(content),
            full_bytes=_whole(content["full_bytes"]),
            new_bytes=_whole(content["new_bytes"]),
            files={
                _inside(file): FileFacts(_whole(size), None if sha is None else str(sha))
                for file, (size, sha) in content["files"].items()
            },
            took=_find_duration(content.get("took_ms")),
        )
    except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"it is not a manifest: {type(error).__name__} {error}") from error


def find_file(folder: Location) -> Location | None:
    """Return the file that makes a folder a kept checkpoint or a savepoint, or None."""
    entry = place_at(folder).find_entry()
    return None if entry is None else folder / entry.manifest


def read(folder: Location) -> Manifest:
    """Return what a kept checkpoint or a savepoint says of itself.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND if the folder is none, CHECKPOINT_DAMAGED if its
            manifest does not parse.
    """
    place = place_at(folder)
    entry = place.find_entry()
    if entry is None:
        is_there = folder.is_dir() if is_local(folder) else True
        raise HeadgateError(
            "CHECKPOINT_NOT_FOUND",
            f"cannot read a checkpoint in {folder}: "
            + (f"it has none of {', '.join(MANIFESTS)}" if is_there else "no folder"),
            hint=f"ls {folder.parent}",
        )
    return parse_content(folder, entry.manifest, place.read_texts([entry.manifest])[0])


def parse_content(folder: Location, name: str, content: str | Exception) -> Manifest:
    """Return the manifest that was read from a file in a folder.

    Args:
        content: The text, or why it could not be read.

    Raises:
        HeadgateError: CHECKPOINT_INCOMPLETE or CHECKPOINT_DAMAGED.
    """
    if isinstance(content, StoreError):
        raise content
    if isinstance(content, FileNotFoundError):
        raise refuse(
            "cannot read the checkpoint", [gone(name)], folder, hint=f"ls {folder.parent}"
        ) from content
    try:
        if isinstance(content, Exception):
            raise content
        return parse(content)
    except (OSError, ValueError) as error:
        raise HeadgateError(
            "CHECKPOINT_DAMAGED",
            f"cannot read the checkpoint in {folder}: {name} is corrupted ({error})",
            hint=f"ls {folder.parent}",
        ) from error


def _facts(content: Mapping[str, Any]) -> CheckpointFacts:
    watermark = content["watermark"]
    return CheckpointFacts(
        job=str(content["job"]),
        lineage=str(content["lineage"]),
        completed_at=_time(content["completed_at"]),
        duration=timedelta(milliseconds=content["duration_ms"]),
        watermark=None if watermark is None else _time(watermark),
        sources={
            name: SourceFacts(source["position"], _whole(source["records"]))
            for name, source in content["sources"].items()
        },
        state={
            uid: StateFacts(_whole(state["rows"]), _whole(state["bytes"]))
            for uid, state in content["state"].items()
        },
        parallelism=_whole(content["parallelism"]),
        operators=tuple(content["operators"]),
        tables=dict(content["tables"]),
        keys=dict(content["keys"]),
        flow=dict(content["flow"]),
        state_format=_whole(content.get("state_format", FIRST_STATE_FORMAT)),
    )


def _find_duration(ms: Any) -> timedelta | None:
    return None if ms is None else timedelta(milliseconds=_whole(ms))


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    return value


def _inside(file: str) -> str:
    """Refuse a name that leads out of the folder: a manifest may come from anywhere."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in file:
        raise ValueError(f"{file!r} does not lie in the folder")
    return file
