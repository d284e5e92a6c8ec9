"""Portable savepoints: a job's state as Parquet files that any tool can read and change.

FOLDER/portable.json           where the state is from, and where sources go on
FOLDER/state/UID/*.parquet     what operator UID holds

Spark reads the state in a process of its own, never in the job's: this module is that process too.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Registers the kinds of topics that a flow's JSON may name.
import headgate.connectors  # noqa: F401
from headgate._clock import Clock, SystemClock
from headgate._codec import alias, decode, encode
from headgate._locations import Location, is_local, parse_location
from headgate.checkpoints.catalog import read_kept, read_manifest
from headgate.checkpoints.checkpoint import Checkpoint, describe_checkpoint
from headgate.checkpoints.manifest import (
    CheckpointFacts,
    Kind,
    Manifest,
    SourceFacts,
    StateFacts,
)
from headgate.checkpoints.restore import fork_batch
from headgate.checkpoints.savepoint import check_place
from headgate.checkpoints.sparklog import SOURCES, read_batch, read_commit
from headgate.checkpoints.state_format import check_state_format
from headgate.checkpoints.storage import is_draft, publishing
from headgate.checkpoints.stores import Files, files_at, is_kept_on_store, place_at
from headgate.engine.plan.clocks import has_ended, read_partition_times, read_times
from headgate.engine.portable.process_form import ProcessForm, StateShape
from headgate.engine.settings import HeldState, SparkSettings, held_state
from headgate.errors import Domain, HeadgateError, StoreError
from headgate.flow.names import check_uid
from headgate.flow.operators.nodes import Enrich, Label, Process, label
from headgate.jobs.checkpoints.keeper import by_source
from headgate.jobs.checkpoints.spark_process import answer_order, ask_reader
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import (
    Run,
    SchemaJson,
    get_committed,
    has_portable_form,
    operator_numbers,
)

FORMAT = 1
FILE = "portable.json"
_STATE = "state"


@dataclass(frozen=True, slots=True)
class EventTime:
    """How far event time has come.

    Attributes:
        watermark_ms: 0 for none.
        times: Of each stream, by source id, in epoch milliseconds.
        partitions: Likewise of each stream's partitions, by their names.
    """

    watermark_ms: int = 0
    times: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether a drain has ended it, so that all further events are late."""
        return has_ended(self.times.values())


@dataclass(frozen=True, slots=True)
class PortableSavepoint:
    """A portable savepoint that was taken.

    Attributes:
        rows: By uid; markers of deleted rows count.
    """

    name: str = field(metadata=alias("savepoint"))
    folder: Location
    batch: int
    bytes: int
    rows: Mapping[str, int]


def state_folder(savepoint: Location, uid: str) -> Location:
    """Return where a portable savepoint has an operator's state."""
    return savepoint / _STATE / uid


def take_portable(
    home: JobFolder, *, to: str | Path | None = None, clock: Clock | None = None
) -> PortableSavepoint:
    """Write the state after a job's last batch as Parquet, whether the job is running or not.

    Args:
        to: The savepoint's folder, which must not exist and appears whole; by default one in the
            job's own folder.

    Raises:
        HeadgateError: NOTHING_COMMITTED, STATE_FORMAT_UNSUPPORTED, SAVEPOINT_NOT_TAKEN if Spark
            fails, or as a restore from that batch would.
    """
    run, batch = get_committed(home, verb="take a savepoint")
    if run.operators and has_portable_form(run.flow):
        check_state_format(
            run.state_format,
            what=f"cannot take a portable savepoint of job {home.name!r}",
            hint="take it with headgate 0.6",
        )
    now = (clock or SystemClock()).now()
    name = f"portable-{now:%Y%m%dT%H%M%S}-{batch}"
    folder = portable_folder(home) / name if to is None else parse_location(str(to))
    if is_local(folder):
        return _write(home, run, batch, folder)
    check_place(folder, job=home.name)
    with (
        place_at(folder).publishing(linked=False, sync=True) as draft,
        tempfile.TemporaryDirectory(prefix="headgate-portable-") as scratch,
    ):
        taken = _write(home, run, batch, Path(scratch) / folder.name)
        source = files_at(Path(scratch) / folder.name)
        draft.bring(source, [file for file in source.walk("") if file != FILE])
        # It comes last, and makes the savepoint one.
        draft.write(FILE, source.read(FILE).decode())
    return replace(taken, folder=folder)


def _write(home: JobFolder, run: Run, batch: int, folder: Path) -> PortableSavepoint:
    with publishing(folder, sync=True) as draft, _at_rest(run, batch) as checkpoint:
        rows = _write_states(home, run, batch, checkpoint, draft / _STATE)
        _write_kept(checkpoint, draft)
        content = _describe(home, run, batch, checkpoint, rows)
        (draft / FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        size = _size(files_at(draft))
    return PortableSavepoint(folder.name, folder.absolute(), batch, size, rows)


def _write_kept(checkpoint: Location, draft: Path) -> None:
    """Copy what sources keep: positions may be of nothing else."""
    source = files_at(checkpoint)
    for name in source.walk(SOURCES):
        file = draft / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(source.read(name))


def portable_folder(home: JobFolder) -> Path:
    """Return where portable savepoints go that were given no other place."""
    return home.path / "portable"


def is_portable(folder: Location) -> bool:
    """Tell whether a folder is a portable savepoint."""
    return not is_kept_on_store(folder) and (folder / FILE).is_file()


def list_portable(home: JobFolder) -> list[Checkpoint]:
    """Return the portable savepoints in a job's folder, oldest first, without corrupted ones."""
    folder = portable_folder(home)
    children = sorted(folder.iterdir()) if folder.is_dir() else []
    savepoints = []
    for child in children:
        if is_portable(child) and not is_draft(child):
            try:
                savepoints.append(read_portable(child))
            except HeadgateError:
                continue
    return sorted(savepoints, key=lambda savepoint: savepoint.completed_at)


def read_portable(folder: Location) -> Checkpoint:
    """Return the portable savepoint that a folder is; its Parquet files are not looked at.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE.
    """
    return describe_checkpoint(folder, _read_portable_manifest(folder))


def read_any(folder: Location) -> Checkpoint:
    """Return the checkpoint, savepoint or portable savepoint that a folder is.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND, CHECKPOINT_DAMAGED or PORTABLE_UNREADABLE.
    """
    return read_portable(folder) if is_portable(folder) else read_kept(folder)


def read_any_manifest(folder: Location) -> Manifest:
    """Return the manifest of a checkpoint, a savepoint or a portable savepoint.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND, CHECKPOINT_DAMAGED or PORTABLE_UNREADABLE.
    """
    return _read_portable_manifest(folder) if is_portable(folder) else read_manifest(folder)


def read_event_time(folder: Location) -> EventTime:
    """Return the event time of a portable savepoint; those of older releases have none.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE.
    """
    with _readable(folder):
        content = json.loads(_read(folder))
        return decode(EventTime, content.get("event_time", {}))


def _read_portable_manifest(folder: Location) -> Manifest:
    with _readable(folder):
        content = json.loads(_read(folder))
        if content["format"] != FORMAT:
            raise ValueError(
                f"its format is {content['format']!r}, and this release reads {FORMAT}"
            )
        size = _size(files_at(folder))
        return Manifest(
            kind=Kind.SAVEPOINT,
            batch=int(content["batch"]),
            facts=_facts(content),
            full_bytes=size,
            new_bytes=size,
            files={},
        )


def _read(folder: Location) -> str:
    text = place_at(folder).read_texts([FILE])[0]
    if isinstance(text, Exception):
        raise text
    return text


@contextmanager
def _readable(folder: Location) -> Iterator[None]:
    """Raise PORTABLE_UNREADABLE for whatever is wrong with a savepoint's own file."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, ValueError, TypeError, KeyError, AttributeError, HeadgateError) as error:
        raise HeadgateError(
            "PORTABLE_UNREADABLE",
            f"cannot read the portable savepoint in {folder}: {FILE} is corrupted ({error})",
            hint="take it again: headgate savepoint JOB --portable",
            domain=Domain.EXTERNAL,
        ) from error


def copy_states(savepoint: Location, taken: Collection[str], into: Location) -> None:
    """Copy operators' state into a run's own folder, where no tool changes it.

    Raises:
        HeadgateError: PORTABLE_UNREADABLE if there is none of an operator.
    """
    source = files_at(savepoint)
    files = {uid: source.walk(f"{_STATE}/{uid}") for uid in taken}
    for uid in taken:
        if not files[uid] and uid not in source.children(_STATE):
            raise HeadgateError(
                "PORTABLE_UNREADABLE",
                f"cannot take the state of operator {uid!r} from {savepoint}: "
                f"there is no folder {_STATE}/{uid}",
                hint=f"restore it, or add --drop-state {uid}",
            )
    # Never linked: a tool may write into a file that is there.
    with place_at(into).publishing(linked=False) as draft:
        kept = source.walk(SOURCES)
        draft.bring(source, [*(file for uid in taken for file in files[uid]), *kept])


@contextmanager
def _at_rest(run: Run, batch: int) -> Iterator[Location]:
    """Yield a folder with the files of a batch, linked beside the one that Spark works on."""
    folder = run.checkpoint.with_name(f"reading.tmp-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        fork_batch(run.checkpoint, batch, folder, quick=True)
        yield folder
    finally:
        place_at(folder).remove_tree()


def _describe(
    home: JobFolder, run: Run, batch: int, checkpoint: Location, rows: Mapping[str, int]
) -> dict[str, Any]:
    begun = read_batch(checkpoint, batch)
    return {
        "format": FORMAT,
        "job": home.name,
        "lineage": run.lineage,
        "batch": batch,
        "completed_at": datetime.fromtimestamp(begun.timestamp_ms / 1000, UTC).isoformat(),
        "parallelism": run.parallelism,
        "operators": list(run.operators),
        "rows": dict(rows),
        "positions": by_source(run.flow, begun.positions),
        "event_time": {
            "watermark_ms": read_commit(checkpoint, batch).watermark_ms,
            "times": read_times(begun.positions, run.flow.streams()),
            "partitions": read_partition_times(begun.positions, run.flow.streams()),
        },
        "tables": {table: schemas[-1].to_json() for table, schemas in run.history.items()},
        "keys": {table: list(key) for table, key in run.keys.items()},
        "flow": json.loads(run.flow.to_json()),
    }


def _facts(content: Mapping[str, Any]) -> CheckpointFacts:
    at = datetime.fromisoformat(content["completed_at"])
    return CheckpointFacts(
        job=str(content["job"]),
        lineage=str(content["lineage"]),
        completed_at=at if at.tzinfo else at.replace(tzinfo=UTC),
        sources={name: SourceFacts(position, 0) for name, position in content["positions"].items()},
        state={uid: StateFacts(int(rows), 0) for uid, rows in content["rows"].items()},
        parallelism=int(content["parallelism"]),
        operators=tuple(check_uid(uid) for uid in content["operators"]),
        tables={table: [schema] for table, schema in content["tables"].items()},
        keys=dict(content["keys"]),
        flow=dict(content["flow"]),
    )


def _size(files: Files) -> int:
    return sum(files.size(file) for file in files.walk(""))


# The process that reads the state.


def _write_states(
    home: JobFolder, run: Run, batch: int, checkpoint: Location, into: Path
) -> dict[str, int]:
    log = home.log_file.with_name("portable.log")
    settings = SparkSettings(parallelism=run.parallelism, log_file=log.absolute())
    order = _order(settings, into.absolute(), run, checkpoint.absolute(), batch)
    answer = ask_reader("headgate.jobs.checkpoints.portable", encode(order), log)
    if "rows" in answer:
        return dict(answer["rows"])
    raise HeadgateError(
        "SAVEPOINT_NOT_TAKEN",
        f"cannot take a portable savepoint of job {home.name!r}: {answer['failed']}",
        hint=f"less {log}",
        domain=Domain.INTERNAL,
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """The state of an operator, with every schema of its table."""

    held: HeldState
    history: tuple[SchemaJson, ...]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Process:
    """The state of a process function: the parts of a ProcessForm."""

    held: HeldState
    history: tuple[SchemaJson, ...]
    row: SchemaJson | None
    states: tuple[StateShape, ...]


@dataclass(frozen=True, slots=True)
class _Order:
    """The state to write, by operator uid, and where to."""

    spark: SparkSettings
    into: Path
    tables: Mapping[str, _Table]
    processes: Mapping[str, _Process]


def _order(spark: SparkSettings, into: Path, run: Run, checkpoint: Location, batch: int) -> _Order:
    tables, processes = {}, {}
    numbers = operator_numbers(run.operators)
    for node in run.flow.stateful():
        if isinstance(node, Process) and node.table is None:
            form = ProcessForm.of(node, run.history[node.id])
            held = held_state(node, checkpoint, numbers[node.id], batch)
            processes[node.id] = _Process(held, form.history, form.row, form.states)
            continue
        if not isinstance(node, Enrich | Label):
            raise HeadgateError(
                "SAVEPOINT_NOT_TAKEN",
                f"cannot take a portable savepoint: {label(node)} holds state that has no "
                "portable form",
                hint="take an ordinary savepoint: omit --portable",
            )
        held = held_state(node, checkpoint, numbers[node.id], batch)
        tables[node.id] = _Table(held, run.history[node.table], run.keys[node.table])
    return _Order(spark, into, tables, processes)


def _read_states(content: Mapping[str, Any]) -> dict[str, int]:
    from headgate.engine.portable.state import TableForm, write_states

    order = decode(_Order, content)
    tables = {
        uid: (table.held, TableForm(table.history, table.key))
        for uid, table in order.tables.items()
    }
    processes = {
        uid: (process.held, ProcessForm(process.history, process.row, process.states))
        for uid, process in order.processes.items()
    }
    return write_states(order.spark, {**tables, **processes}, order.into)


def main() -> None:
    """Run as the process that reads the state."""
    answer_order(lambda order: {"rows": _read_states(order)})


if __name__ == "__main__":
    main()
