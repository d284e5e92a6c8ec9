"""Runs: one lineage of checkpoints each, with a manifest of what its state means."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from headgate._codec import DecodeError, Form, Moment, alias, decode, encode, shaped
from headgate._locations import Location, is_local, seen_from
from headgate.checkpoints.sparklog import find_begun, find_last_commit, find_open_batch
from headgate.checkpoints.state_format import (
    FIRST_STATE_FORMAT,
    STATE_FORMAT,
    check_state_format,
)
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Enrich, Join, Label, Process, Source
from headgate.flow.schemas.changes import difference, only_adds
from headgate.flow.schemas.schema import Schema
from headgate.flow.state.changes import find_state_change
from headgate.flow.state.joins import known_columns
from headgate.flow.state.processes import state_schema
from headgate.jobs.job_folder import JobFolder, broken_file, read_json, write_json

# Since 2 a manifest has the format of the state, since 3 the rules by which rows are placed.
FORMAT = 3
_MANIFEST = "run.json"
# Tasks run in the driver alone, and end with it.
_LOCAL_MASTER = re.compile(r"local(\[|$)")
# The values of fields that older manifests lack.
_FIRST_FORMAT = {
    "state_format": FIRST_STATE_FORMAT,
    "placed_since": None,
    "checksums_since": None,
}
SchemaJson = Annotated[Schema, Form(Schema.to_json, Schema.from_json)]
# A flow as JSON values.
FlowJson = Annotated[
    Graph,
    Form(lambda flow: json.loads(flow.to_json()), lambda json_: Graph.from_json(json.dumps(json_))),
]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run that was restored comes from.

    Attributes:
        checkpoint: The id of the checkpoint or savepoint.
        lineage: The run it was taken in.
        batch: The batch it was taken after.
        folder: A copy of it that Spark can read, for operators that take their state by uid; None
            where the run went on from it as it was.
        operators: The numbers Spark knew the operators by, by uid, of those whose state is taken.
        positions: Where sources went on, by source id; only with `folder`.
        loading: Tables that were still being read for the first time; only with `folder`.
        portable: Whether `folder` holds a portable savepoint's state, and nothing of Spark's.
        began: Where the checkpoint stands in each source, by source id.
        watermark_ms: The checkpoint's watermark, 0 for none; only with `folder`.
        times: The event time each stream had reached, in epoch milliseconds; only with `folder`.
        partition_times: Likewise of each stream's partitions, by their names.
        kept: The checkpoint's folder with what sources keep, such as the numbers of files that
            positions are of; None where the run went on from it as it was.
    """

    checkpoint: str
    lineage: str
    batch: int
    folder: Location | None = None
    operators: Mapping[str, int] = field(default_factory=dict)
    positions: Mapping[str, str] = field(default_factory=dict)
    loading: tuple[str, ...] = ()
    portable: bool = False
    began: Mapping[str, str] = field(default_factory=dict)
    watermark_ms: int = 0
    times: Mapping[str, int] = field(default_factory=dict)
    partition_times: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    kept: Location | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What a run's state means, and where it lies.

    Attributes:
        lineage: Names the run; output files are named after it.
        parallelism: State partitions; fixed, since state is spread by it.
        operators: Uids of the operators that hold state, in Spark's order.
        history: Every schema each table has had, by source id, and the state of each join and
            process, by uid; rows in state say which is theirs.
        keys: The key columns of each table, by source id.
        flow: The flow as it was last run.
        origin: Where the run comes from, if it was restored.
        state_format: Of what form the operators' state is.
        placed_since: The first batch whose rows are placed by the present rules; None in the
            manifests of release 0.7, which had others.
        checksums_since: The first batch whose logs have checksums; None in a run that only
            release 0.7 has written.
        ends_with_driver: Whether its tasks have only ever run in drivers of this home, on this
            machine: they are gone once the driver's lock is free.
    """

    lineage: str
    created: Moment
    checkpoint: Location
    parallelism: int
    operators: tuple[str, ...]
    history: Mapping[str, tuple[SchemaJson, ...]] = field(metadata=alias("tables"))
    keys: Mapping[str, tuple[str, ...]]
    flow: FlowJson
    origin: Origin | None = None
    state_format: int = STATE_FORMAT
    placed_since: int | None = 0
    checksums_since: int | None = 0
    ends_with_driver: bool = False

    __get_pydantic_core_schema__ = shaped(prepare=lambda content: {**_FIRST_FORMAT, **content})


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A run, or one that it comes from.

    Attributes:
        run: None if its manifest is gone, or the lineage is of another job.
        last_batch: The batch at which the next run left it; None for the run itself.
    """

    lineage: str
    run: Run | None
    last_batch: int | None


def new_run(
    home: JobFolder,
    graph: Graph,
    *,
    parallelism: int,
    checkpoints: Location | None,
    now: datetime,
    master: str | None = None,
) -> Run:
    """Return a run that starts empty, with a lineage no other run has.

    Args:
        master: Spark's; None if it is not known.
    """
    lineage = f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
    folder = home.run_folder(lineage) if checkpoints is None else checkpoints.absolute() / lineage
    return Run(
        lineage=lineage,
        created=now,
        checkpoint=folder / "checkpoint",
        parallelism=parallelism,
        operators=tuple(node.id for node in graph.stateful()),
        history=extend_history({}, graph),
        keys={table.id: table.key for table in graph.tables()},
        flow=graph,
        # Another host may go on with a run on a store, and this one may still be at work then.
        ends_with_driver=_is_local_master(master) and is_local(folder),
    )


def _is_local_master(master: str | None) -> bool:
    return master is not None and _LOCAL_MASTER.match(master) is not None


def continue_run(run: Run, graph: Graph, *, job: str, master: str | None = None) -> Run:
    """Return the run with a flow as it is now, or refuse a flow its state does not fit.

    Args:
        master: Spark's; None if it is not known.
    """
    _check_operators(run, graph, job)
    check_tables(run.history, run.keys, graph.tables(), job=job)
    keys = {table.id: table.key for table in graph.tables()}
    return replace(
        run,
        history=extend_history(run.history, graph),
        keys={**run.keys, **keys},
        flow=graph,
        # A batch that release 0.7 left open is finished by its own rules.
        placed_since=_after(find_open_batch(run.checkpoint))
        if run.placed_since is None
        else run.placed_since,
        checksums_since=_after(find_begun(run.checkpoint))
        if run.checksums_since is None
        else run.checksums_since,
        ends_with_driver=run.ends_with_driver and _is_local_master(master),
    )


def extend_history(
    history: Mapping[str, tuple[Schema, ...]], graph: Graph
) -> dict[str, tuple[Schema, ...]]:
    """Return every schema that each table, join and process has had, with those of a flow."""
    extended = dict(history)
    for name, schema in _stored_schemas(graph).items():
        known = extended.get(name, ())
        if known[-1:] != (schema,):
            extended[name] = (*known, schema)
    return extended


def forget_processes(
    history: Mapping[str, tuple[Schema, ...]], flow: Graph, taken: Collection[str]
) -> dict[str, tuple[Schema, ...]]:
    """Return a history without the joins and processes of a flow whose state is not taken over.

    Those that are in the next flow begin with its schema as their first one.
    """
    kinds = (Join, Process)
    gone = {node.id for node in flow.nodes if isinstance(node, kinds) and node.id not in taken}
    return {name: schemas for name, schemas in history.items() if name not in gone}


def _stored_schemas(graph: Graph) -> dict[str, Schema]:
    """Return the schemas of what state contains, by the id of the table or operator."""
    tables = {table.id: table.schema for table in graph.tables()}
    processes = (node for node in graph.nodes if isinstance(node, Process))
    joins = (node for node in graph.nodes if isinstance(node, Join))
    known = {node.id: columns for node in joins for columns in known_columns(node, graph.schemas())}
    return {**tables, **{node.id: state_schema(node) for node in processes}, **known}


def _after(batch: int | None) -> int:
    return 0 if batch is None else batch + 1


def check_state(run: Run, *, job: str) -> None:
    """Refuse to go on with a run whose state is of a form that this release does not read.

    Raises:
        HeadgateError: STATE_FORMAT_UNSUPPORTED.
    """
    if run.operators:
        hint = "start empty with --fresh, or go on with headgate 0.6"
        if has_portable_form(run.flow):
            hint = (
                f"take headgate savepoint {job} --portable with headgate 0.6 and restore it here, "
                "or start empty with --fresh"
            )
        check_state_format(run.state_format, what=f"cannot resume job {job!r}", hint=hint)


def has_portable_form(flow: Graph) -> bool:
    """Tell whether all of a flow's state can be in a portable savepoint."""
    return all(
        isinstance(node, Enrich | Label) or (isinstance(node, Process) and node.table is None)
        for node in flow.stateful()
    )


def check_tables(
    history: Mapping[str, tuple[Schema, ...]],
    keys: Mapping[str, tuple[str, ...]],
    tables: Iterable[Source],
    *,
    job: str,
) -> None:
    """Refuse tables whose rows in state cannot be read as the flow now has them."""
    for table in tables:
        known = history.get(table.id, ())
        if known and keys[table.id] != table.key:
            raise HeadgateError(
                "STATE_INCOMPATIBLE",
                f"cannot resume job {job!r}: table {table.id!r} is kept by "
                f"{', '.join(keys[table.id])}, and the flow's key is {', '.join(table.key)}",
                hint="keep the key, or start empty with --fresh",
            )
        if known and known[-1] != table.schema and not only_adds(known[-1], table.schema):
            raise HeadgateError(
                "SCHEMA_CHANGED",
                f"cannot resume job {job!r}: the schema of table {table.id!r} changed: "
                + "; ".join(difference(known[-1], table.schema)),
                hint="only add columns, each nullable or with a default; or start with --fresh",
            )


def find_run(home: JobFolder, lineage: str) -> Run | None:
    """Return a run by its lineage, or None if its manifest is missing.

    Raises:
        HeadgateError: JOB_FILE_BROKEN or JOB_FORMAT_UNSUPPORTED.
    """
    folder = home.run_folder(lineage)
    content = read_manifest(folder)
    if content is None:
        return None
    try:
        run = decode(Run, content)
    except DecodeError as error:
        raise broken_file(folder / _MANIFEST, error) from error
    origin = run.origin
    if origin is not None and origin.folder is not None:
        origin = replace(origin, folder=seen_from(folder, origin.folder))
    return replace(run, checkpoint=seen_from(folder, run.checkpoint), origin=origin)


def find_present(home: JobFolder) -> Run | None:
    """Return the present run of a job; None if it never ran, or the run's manifest is missing."""
    lineage = home.find_present_run()
    return None if lineage is None else find_run(home, lineage)


def get_flow(home: JobFolder, *, doing: str) -> Graph:
    """Return the flow of a job as it was last run, its topics bound.

    Args:
        doing: What cannot be done without a run, up to the job's name.

    Raises:
        HeadgateError: JOB_NEVER_RAN.
    """
    lineage = home.find_present_run() or (home.find_json("status.json") or {}).get("lineage")
    run = None if lineage is None else find_run(home, str(lineage))
    if run is None:
        raise HeadgateError(
            "JOB_NEVER_RAN",
            f"cannot {doing} job {home.name!r}: it has never run",
            hint=f"headgate show {home.name}",
        )
    return run.flow


def operator_numbers(operators: Sequence[str]) -> dict[str, int]:
    """Return Spark's numbers of stateful operators, which count from the sink up, by uid."""
    return {uid: number for number, uid in enumerate(reversed(operators))}


def nothing_committed(verb: str, job: str) -> HeadgateError:
    """Return the error for a job that has no committed batch yet.

    Args:
        verb: What cannot be done, as in `take a savepoint`.
    """
    return HeadgateError(
        "NOTHING_COMMITTED",
        f"cannot {verb} of job {job!r}: no batch has committed yet",
        hint=f"headgate show {job}",
        retryable=True,
    )


def get_committed(home: JobFolder, *, verb: str) -> tuple[Run, int]:
    """Return the present run of a job, and its last batch that committed.

    Raises:
        HeadgateError: NOTHING_COMMITTED.
    """
    run = find_present(home)
    batch = None if run is None else find_last_commit(run.checkpoint)
    if run is None or batch is None:
        raise nothing_committed(verb, home.name)
    return run, batch


def walk_lineage(home: JobFolder, lineage: str | None) -> Iterator[Ancestor]:
    """Yield a run and the runs that it comes from, newest first.

    Args:
        lineage: None for no run at all.
    """
    last_batch: int | None = None
    seen: set[str] = set()
    # Corrupted manifests must not make an endless walk.
    while lineage is not None and lineage not in seen:
        seen.add(lineage)
        run = find_run(home, lineage)
        yield Ancestor(lineage, run, last_batch)
        origin = None if run is None else run.origin
        lineage = None if origin is None else origin.lineage
        last_batch = None if origin is None else origin.batch


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest in a run's folder as JSON values, or None if it is missing."""
    return read_json(folder / _MANIFEST, newest=FORMAT)


def write_run(home: JobFolder, run: Run) -> None:
    """Write the run's manifest, before the run has any state."""
    folder, origin = home.run_folder(run.lineage), run.origin
    if origin is not None and origin.folder is not None:
        origin = replace(origin, folder=_stored(origin.folder, folder))
    content = encode(replace(run, checkpoint=_stored(run.checkpoint, folder), origin=origin))
    write_json(folder / _MANIFEST, {"format": FORMAT, **content})


def find_store(run: Run) -> Location | None:
    """Return the folder of an object store in which a run has its checkpoints; None for a disk."""
    return None if is_local(run.checkpoint) else run.checkpoint.parent.parent


def taken_folder(home: JobFolder, run: Run) -> Location:
    """Return the folder of what the operators of a run take over: on the store of its checkpoints.

    So an empty home can go on with a run that has not committed a batch yet.
    """
    beside = home.run_folder(run.lineage) if is_local(run.checkpoint) else run.checkpoint.parent
    return beside / "taken"


def _stored(location: Location, folder: Path) -> Location:
    """Return a location as a manifest has it.

    Those inside the run's folder are relative to it, so that the job can be moved: a job that finds
    no checkpoint would start empty.
    """
    if not is_local(location):
        return location
    inside = location.is_relative_to(folder)
    return location.relative_to(folder) if inside else location.absolute()


def _check_operators(run: Run, graph: Graph, job: str) -> None:
    now = tuple(node.id for node in graph.stateful())
    if now != run.operators:
        raise HeadgateError(
            "STATE_INCOMPATIBLE",
            f"cannot resume job {job!r}: its state belongs to operators "
            f"{', '.join(run.operators) or 'none'}, and the flow has "
            f"{', '.join(now) or 'none'}",
            hint="add --from latest (operators keep their state by uid), or start with --fresh",
        )
    for uid in now:
        change = find_state_change(run.flow, graph, uid)
        if change is not None:
            raise HeadgateError(
                "STATE_INCOMPATIBLE",
                f"cannot resume job {job!r}: operator {uid!r} {change}",
                hint=f"keep it unchanged, add --from latest --drop-state {uid}, or start with "
                "--fresh",
            )
