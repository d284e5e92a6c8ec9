"""What a restore does: resolved once, as a value, and followed by the run that is started."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from headgate._codec import Moment
from headgate._locations import Location, is_local, parse_location
from headgate._units import parse_duration
from headgate.checkpoints.catalog import list_kept
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import CheckpointFacts, find_file
from headgate.checkpoints.sparklog import find_begun, read_offsets
from headgate.checkpoints.state_format import check_state_format
from headgate.connectors.contract.connector import RecordCount
from headgate.connectors.registry import find_connector
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.names import did_you_mean
from headgate.flow.operators.nodes import Source, table_of
from headgate.flow.schemas.schema import Schema
from headgate.flow.state.changes import find_state_change, warn_of_lost_state
from headgate.jobs.checkpoints.keeper import by_source
from headgate.jobs.checkpoints.listing import list_past
from headgate.jobs.checkpoints.portable import FILE as PORTABLE
from headgate.jobs.checkpoints.portable import (
    is_portable,
    list_portable,
    read_any,
    read_any_manifest,
    read_event_time,
)
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.drain import check_not_drained_at
from headgate.jobs.runs.lineage import check_tables, find_present, has_portable_form
from headgate.jobs.runs.moved_sources import check_places
from headgate.jobs.values import LATEST, RunOptions

_AGO = re.compile(r"(?P<duration>\S+)\s+ago")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What a restore does, for the person who asks for it.

    Attributes:
        checkpoint: Its id.
        run: The run it was taken in.
        kind: `checkpoint` or `savepoint`.
        as_it_was: Whether Spark goes on from the checkpoint itself; otherwise operators take their
            state from it by uid, and sources their positions.
        state_taken: Operators that keep their state.
        state_dropped: Operators whose state is left behind, as the user said.
        starts_empty: Operators that start empty, since the checkpoint does not know them.
        records_again: Records that will be read again, by source: those between the checkpoint
            and where the present run is. None if the count is not known.
        records_estimated: The sources whose number of records is an estimate.
        outputs_with_repeats: Outputs that may receive rows they have received before.
        warnings: What is lost, if an operator starts empty while state is dropped.
    """

    checkpoint: str
    kind: str
    completed_at: Moment
    folder: Location
    as_it_was: bool
    state_taken: tuple[str, ...]
    state_dropped: tuple[str, ...]
    starts_empty: tuple[str, ...]
    records_again: Mapping[str, int | None]
    outputs_with_repeats: tuple[str, ...]
    records_estimated: tuple[str, ...] = ()
    run: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedPlan:
    """A plan with what it was made from: a run follows it only while that is unchanged.

    Attributes:
        job: The job that is restored.
        manifest_sha256: The checksum of the checkpoint's manifest, which has those of its files.
        flow_sha256: The checksum of the flow's graph.
    """

    job: str
    plan: RestorePlan
    manifest_sha256: str
    flow_sha256: str


def resolve_restore(
    home: JobFolder, graph: Graph, options: RunOptions, *, now: datetime
) -> SealedPlan:
    """Return what a restore does: the checkpoint is chosen here, and nowhere else.

    Args:
        options: With `restore_from` or `restore_at`.

    Raises:
        HeadgateError: CHECKPOINT_NOT_FOUND, or what a restore from that checkpoint refuses.
    """
    chosen = find_target(home, source=options.restore_from, at=options.restore_at, now=now)
    return SealedPlan(
        job=home.name,
        plan=plan_restore(home, graph, chosen, options),
        manifest_sha256=_manifest_sha256(chosen.folder),
        flow_sha256=_flow_sha256(graph),
    )


def check_plan(
    home: JobFolder, graph: Graph, sealed: SealedPlan, options: RunOptions
) -> RestorePlan:
    """Return the plan that was resolved, with the records that are read again as of now.

    Everything that a restore refuses is refused here, too; no other checkpoint is chosen.

    Raises:
        HeadgateError: RESTORE_CHANGED if the checkpoint or the flow is not what the plan was made
            from; CHECKPOINT_NOT_FOUND or CHECKPOINT_DAMAGED.
    """
    plan = sealed.plan
    checkpoint = read_any(plan.folder)
    changed = [
        what
        for what, before, now in (
            ("the checkpoint", sealed.manifest_sha256, _manifest_sha256(plan.folder)),
            ("the flow", sealed.flow_sha256, _flow_sha256(graph)),
        )
        if before != now
    ]
    if changed:
        raise HeadgateError(
            "RESTORE_CHANGED",
            f"cannot restore job {home.name!r} from {plan.checkpoint} as planned: "
            f"{' and '.join(changed)} changed since",
            hint=f"headgate restore {home.name} --from {plan.checkpoint} --dry-run",
        )
    return plan_restore(home, graph, checkpoint, options)


def find_target(
    home: JobFolder, *, source: str | None, at: str | None, now: datetime
) -> Checkpoint:
    """Return the checkpoint or savepoint that the user means.

    Args:
        source: `latest`, an id such as `chk-17`, `LINEAGE/chk-17` of an earlier run, the name of
            a savepoint, a folder, or an address such as `s3a://shop/before-upgrade`.
        at: A moment: `2026-11-15 10:05` in local time, or `10m ago`; the newest checkpoint that
            was complete by then.
    """
    if source is not None and "/" in source and not is_local(parse_location(source)):
        return read_any(parse_location(source))
    if source is not None and ("/" in source or Path(source).is_dir()) and _is_folder(source):
        return read_any(Path(source))
    kept = list_past(home)
    if at is not None:
        moment = parse_moment(at, now)
        earlier = [checkpoint for checkpoint in kept if checkpoint.completed_at <= moment]
        if not earlier:
            raise _not_found(
                home, f"no checkpoint was complete at {moment:%Y-%m-%d %H:%M:%S}", kept
            )
        return earlier[-1]
    if source in (None, LATEST):
        if not kept:
            raise _not_found(home, "it has none yet", kept)
        return kept[-1]
    lineage, slash, name = str(source).rpartition("/")
    if slash:
        kept = list_kept(home.checkpoints_folder(lineage))
    wanted = f"chk-{name}" if name.isdigit() else name
    # A savepoint may be named whatever run it is of; those of the past come first.
    named = [*list_kept(home.savepoints_folder), *list_portable(home)]
    for checkpoint in (*reversed(kept), *named):
        if checkpoint.id == wanted:
            return checkpoint
    raise _not_found(home, f"there is no {source!r}", kept)


def parse_moment(text: str, now: datetime) -> datetime:
    """Return the moment that `--at` names; without a zone it is local time."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return now - parse_duration(ago["duration"])
    try:
        return datetime.fromisoformat(text.strip()).astimezone()
    except ValueError as error:
        raise HeadgateError(
            "BAD_MOMENT",
            f"cannot read moment {text!r}: it must be a time or a duration ago",
            hint="write --at '2026-11-15 10:05' or --at '10m ago'",
        ) from error


def plan_restore(
    home: JobFolder, graph: Graph, kept: Checkpoint, options: RunOptions
) -> RestorePlan:
    """Return what restoring a flow from a checkpoint does, or refuse what it cannot do.

    Args:
        options: Name the state partitions of the new run, and the uids whose state is left behind.
    """
    ended = is_portable(kept.folder) and read_event_time(kept.folder).has_ended
    check_not_drained_at(kept, list_past(home), job=home.name, ended=ended)
    facts = read_any_manifest(kept.folder).facts
    before = tuple(facts.operators)
    now = tuple(node.id for node in graph.stateful())
    gone = [uid for uid in before if uid not in now]
    for uid in gone:
        if uid not in options.drop_state:
            raise HeadgateError(
                "RESTORE_UNKNOWN_OPERATOR",
                f"cannot restore job {home.name!r} from {kept.id}: it holds state of operator "
                f"{uid!r}, and the flow has no such uid",
                hint=f"keep the uid, or add --drop-state {uid}",
            )
    taken = tuple(uid for uid in now if uid in before and uid not in options.drop_state)
    old = Graph.from_json(json.dumps(facts.flow))
    if taken and not is_portable(kept.folder):
        _check_format(home.name, kept, facts.state_format, old, taken)
    for uid in taken:
        _check_state(home.name, kept, old, graph, uid)
    keys = {table: tuple(key) for table, key in facts.keys.items()}
    check_tables(read_tables(facts), keys, _tables_of(graph, taken), job=home.name)
    check_places(
        old,
        graph,
        positions_of(old, kept),
        what=f"cannot restore job {home.name!r} from {kept.id}",
        job=home.name,
    )
    dropped = tuple(uid for uid in before if uid not in taken)
    empty = tuple(uid for uid in now if uid not in taken)
    again = count_read_again(home, kept)
    same = now == before == taken and options.parallelism in (None, facts.parallelism)
    return RestorePlan(
        checkpoint=kept.id,
        run=kept.run,
        kind=kept.kind.value,
        completed_at=kept.completed_at,
        folder=kept.folder,
        as_it_was=same and not is_portable(kept.folder),
        state_taken=taken,
        state_dropped=dropped,
        starts_empty=empty,
        records_again={
            name: None if count is None else count.records for name, count in again.items()
        },
        outputs_with_repeats=(*(node.id for node in graph.outputs()), graph.dead_letters.name),
        records_estimated=tuple(
            name for name, count in again.items() if count and count.is_estimate
        ),
        warnings=tuple(warn_of_lost_state(old, graph, dropped=dropped, empty=empty)),
    )


def count_read_again(home: JobFolder, kept: Checkpoint) -> dict[str, RecordCount | None]:
    """Return how many records lie between a checkpoint and where the job is, by source id."""
    flow = flow_of(kept)
    positions = positions_of(flow, kept)
    reached = _find_present_positions(home)
    topics = {node.id: node.topic for node in flow.nodes if isinstance(node, Source)}
    # The flow of an old manifest may name topics that nothing binds any more.
    connectors = {name: find_connector(topic) for name, topic in topics.items()}
    return {
        name: None
        if reached is None or connector is None
        else connector.positions.count_between(topics[name], positions.get(name), reached.get(name))
        for name, connector in connectors.items()
    }


def positions_of(flow: Graph, kept: Checkpoint) -> dict[str, str | None]:
    """Return where a checkpoint stands in every source."""
    if is_portable(kept.folder):
        return {name: source.position for name, source in kept.sources.items()}
    return by_source(flow, read_offsets(kept.folder, kept.batch))


def flow_of(kept: Checkpoint) -> Graph:
    """Return the flow that a checkpoint is of."""
    return Graph.from_json(json.dumps(read_any_manifest(kept.folder).facts.flow))


def read_tables(facts: CheckpointFacts) -> dict[str, tuple[Schema, ...]]:
    """Return every schema that each table of a checkpoint has had, and the state of each process.

    By source id, and by uid.
    """
    return {
        table: tuple(Schema.from_json(schema) for schema in schemas)
        for table, schemas in facts.tables.items()
    }


def _find_present_positions(home: JobFolder) -> dict[str, str | None] | None:
    """Return where the present run is, or None where its files cannot tell.

    An open batch counts: its rows may be written.
    """
    try:
        run = find_present(home)
        last = None if run is None else find_begun(run.checkpoint)
        if run is None or last is None:
            return {}
        return by_source(run.flow, read_offsets(run.checkpoint, last))
    except HeadgateError:
        return None


def _tables_of(graph: Graph, taken: Collection[str]) -> list[Source]:
    names = {table_of(node) for node in graph.stateful() if node.id in taken}
    return [table for table in graph.tables() if table.id in names]


def _check_format(
    job: str, kept: Checkpoint, state_format: int, old: Graph, taken: Collection[str]
) -> None:
    dropped = " ".join(f"--drop-state {uid}" for uid in taken)
    check_state_format(
        state_format,
        what=f"cannot restore job {job!r} from {kept.id}",
        hint=f"restore it with headgate 0.6, take headgate savepoint {job} --portable there, and "
        "restore that here"
        if has_portable_form(old)
        else f"add {dropped} to go on without the state",
    )


def _check_state(job: str, kept: Checkpoint, old: Graph, new: Graph, uid: str) -> None:
    change = find_state_change(old, new, uid)
    if change is not None:
        raise HeadgateError(
            "STATE_INCOMPATIBLE",
            f"cannot restore job {job!r} from {kept.id}: operator {uid!r} {change}",
            hint=f"keep it unchanged, or add --drop-state {uid}",
        )


def _is_folder(text: str) -> bool:
    path = Path(text)
    names = ("manifest.json", "checkpoint.json", "portable.json")
    return any((path / name).is_file() for name in names)


def _manifest_sha256(folder: Location) -> str:
    file = folder / PORTABLE if is_portable(folder) else find_file(folder)
    try:
        # A folder without a manifest was refused by then, unless it was removed meanwhile.
        return hashlib.sha256((folder if file is None else file).read_bytes()).hexdigest()
    except OSError as error:
        raise HeadgateError(
            "CHECKPOINT_NOT_FOUND",
            f"cannot restore from {folder.name}: it was removed meanwhile",
            hint=f"ls {folder.parent}",
        ) from error


def _flow_sha256(graph: Graph) -> str:
    return hashlib.sha256(graph.to_json().encode()).hexdigest()


def _not_found(home: JobFolder, problem: str, kept: Sequence[Checkpoint]) -> HeadgateError:
    present = home.find_present_run()
    ids = [checkpoint.id if checkpoint.run == present else checkpoint.source for checkpoint in kept]
    near = (
        did_you_mean(problem, ids) if not ids else f"headgate restore {home.name} --from {ids[-1]}"
    )
    return HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot restore job {home.name!r}: {problem}"
        + (f"; it has {', '.join(ids)}" if ids else ""),
        hint=near or f"headgate checkpoints {home.name}",
    )
