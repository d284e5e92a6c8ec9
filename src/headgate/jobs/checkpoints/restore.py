"""Restoring a job: a new run that goes on from a checkpoint; the old run stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from headgate._units import parse_duration
from headgate.checkpoints.catalog import list_kept, read_kept
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import CheckpointFacts
from headgate.checkpoints.restore import fork
from headgate.checkpoints.sparklog import (
    find_last_commit,
    find_load_target,
    read_commit,
    read_offsets,
)
from headgate.checkpoints.state_format import check_state_format
from headgate.connectors.registry import find_connector, get_connector
from headgate.engine.clocks import read_partition_times, read_times
from headgate.engine.plan import source_name
from headgate.errors import HeadgateError
from headgate.flow.graph import Graph
from headgate.flow.names import did_you_mean
from headgate.flow.operators import Enrich, Source
from headgate.flow.schema import Schema
from headgate.flow.state_shape import find_state_change
from headgate.jobs.checkpoints.keeper import by_source
from headgate.jobs.checkpoints.listing import list_past
from headgate.jobs.checkpoints.portable import (
    copy_states,
    is_portable,
    list_portable,
    read_any_manifest,
    read_portable,
)
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.home import JobHome
from headgate.jobs.runs.drain import check_not_drained_at
from headgate.jobs.runs.lineage import (
    Origin,
    Run,
    check_tables,
    find_run,
    has_portable_form,
    new_run,
)

# Up to this many bytes every file is read and its checksum compared before it is used.
READ_WHOLE = 1 << 30

_AGO = re.compile(r"(?P<duration>\S+)\s+ago")


def find_target(home: JobHome, *, source: str | None, at: str | None, now: datetime) -> Checkpoint:
    """Return the checkpoint or savepoint that the user means.

    Args:
        source: `latest`, an id such as `chk-17`, `LINEAGE/chk-17` of an earlier run, the name of
            a savepoint, or a folder.
        at: A moment: `2026-11-15 10:05` in local time, or `10m ago`; the newest checkpoint that
            was complete by then.
    """
    if source is not None and ("/" in source or Path(source).is_dir()) and _is_folder(source):
        folder = Path(source)
        return read_portable(folder) if is_portable(folder) else read_kept(folder)
    kept = list_past(home)
    if at is not None:
        moment = parse_moment(at, now)
        found = [each for each in kept if each.completed_at <= moment]
        if not found:
            raise _not_found(
                home, f"no checkpoint was complete at {moment:%Y-%m-%d %H:%M:%S}", kept
            )
        return found[-1]
    if source in (None, "latest"):
        if not kept:
            raise _not_found(home, "it has none yet", kept)
        return kept[-1]
    lineage, slash, name = str(source).rpartition("/")
    if slash:
        kept = list_kept(home.checkpoints_folder(lineage))
    wanted = f"chk-{name}" if name.isdigit() else name
    # A savepoint may be named whatever run it is of; those of the past come first.
    named = [*list_kept(home.savepoints_folder), *list_portable(home)]
    for each in (*reversed(kept), *named):
        if each.id == wanted:
            return each
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
    home: JobHome, graph: Graph, kept: Checkpoint, *, drop: Collection[str], parallelism: int | None
) -> RestorePlan:
    """Return what restoring a flow from a checkpoint does, or refuse what it cannot do."""
    check_not_drained_at(kept, list_past(home), job=home.name)
    facts = read_any_manifest(kept.folder).facts
    before = tuple(facts.operators)
    now = tuple(node.id for node in graph.stateful())
    gone = [uid for uid in before if uid not in now]
    for uid in gone:
        if uid not in drop:
            raise HeadgateError(
                "RESTORE_UNKNOWN_OPERATOR",
                f"cannot restore job {home.name!r} from {kept.id}: it holds state of operator "
                f"{uid!r}, and the flow has no such uid",
                hint=f"keep the uid, or add --drop-state {uid}",
            )
    taken = tuple(uid for uid in now if uid in before and uid not in drop)
    old = Graph.from_json(json.dumps(facts.flow))
    if taken and not is_portable(kept.folder):
        _check_format(home.name, kept, facts.state_format, old, taken)
    for uid in taken:
        _check_state(home.name, kept, old, graph, uid)
    keys = {table: tuple(key) for table, key in facts.keys.items()}
    check_tables(_read_tables(facts), keys, _tables_of(graph, taken), job=home.name)
    same = now == before == taken and parallelism in (None, facts.parallelism)
    return RestorePlan(
        kept=kept,
        as_it_was=same and not is_portable(kept.folder),
        taken=taken,
        dropped=tuple(uid for uid in before if uid not in taken),
        empty=tuple(uid for uid in now if uid not in taken),
        again=count_read_again(home, kept),
        outputs=(*(node.id for node in graph.outputs()), graph.dead_letters.name),
    )


def restore_run(
    home: JobHome,
    graph: Graph,
    plan: RestorePlan,
    *,
    parallelism: int | None,
    checkpoints: Path | None,
    now: datetime,
    reached: Mapping[str, str] | None = None,
) -> Run:
    """Make the new run on disk; the job goes on from it when it is started.

    Args:
        reached: Where sources go on, by source id; where the checkpoint stands if left out.
    """
    kept = plan.kept
    facts = read_any_manifest(kept.folder).facts
    run = new_run(
        home,
        graph,
        parallelism=parallelism or facts.parallelism,
        checkpoints=checkpoints,
        now=now,
    )
    positions = _positions(kept, graph) if reached is None else reached
    if plan.as_it_was and reached is None:
        fork(kept.folder, run.checkpoint, quick=_is_large(kept))
        origin = Origin(kept.id, kept.run, kept.batch, began=positions)
    else:
        origin = _take_state(home.run_folder(run.lineage) / "taken", plan, graph, positions)
    return replace(run, history=_extend_history(facts, graph), origin=origin)


def _take_state(
    folder: Path, plan: RestorePlan, graph: Graph, positions: Mapping[str, str]
) -> Origin:
    """Bring the state that operators take over by uid into a folder of the new run."""
    kept = plan.kept
    portable = is_portable(kept.folder)
    if portable:
        copy_states(kept.folder, plan.taken, folder)
    else:
        fork(kept.folder, folder, quick=_is_large(kept))
    ends = {} if portable else read_offsets(kept.folder, kept.batch)
    return Origin(
        kept.id,
        kept.run,
        kept.batch,
        folder=folder,
        operators=_numbers(read_any_manifest(kept.folder).facts.operators, plan.taken),
        positions=positions,
        began=positions,
        loading=() if portable else find_loading(folder, positions, graph),
        portable=portable,
        watermark_ms=0 if portable else read_commit(kept.folder, kept.batch).watermark_ms,
        times=read_times(ends, graph.streams()),
        partition_times=read_partition_times(ends, graph.streams()),
    )


def _extend_history(facts: CheckpointFacts, graph: Graph) -> dict[str, tuple[Schema, ...]]:
    """Return every schema that each table has had, with those of the flow."""
    history = _read_tables(facts)
    for table in graph.tables():
        known = history.get(table.id, ())
        if not known or known[-1] != table.schema:
            history[table.id] = (*known, table.schema)
    return history


def _read_tables(facts: CheckpointFacts) -> dict[str, tuple[Schema, ...]]:
    return {
        table: tuple(Schema.from_json(schema) for schema in schemas)
        for table, schemas in facts.tables.items()
    }


def _is_large(kept: Checkpoint) -> bool:
    """Tell whether reading every file would take longer than a restore should.

    What is not read here is checked by Spark and RocksDB as they load it.
    """
    return kept.full_bytes > READ_WHOLE


def _numbers(operators: Sequence[str], taken: Collection[str]) -> dict[str, int]:
    # Spark counts stateful operators from the sink up.
    return {uid: len(operators) - 1 - place for place, uid in enumerate(operators) if uid in taken}


def find_loading(folder: Path, positions: Mapping[str, str], graph: Graph) -> tuple[str, ...]:
    """Return the tables that are still being read for the first time: streams wait for them.

    Args:
        folder: Spark's, with what the gates noted.
        positions: Where sources are, by source id.
    """
    return tuple(
        table.id
        for table in graph.tables()
        if table.id in positions
        and not get_connector(table.topic).positions.has_reached(
            positions[table.id], find_load_target(folder, source_name(table.id))
        )
    )


def _flow_of(kept: Checkpoint) -> Graph:
    return Graph.from_json(json.dumps(read_any_manifest(kept.folder).facts.flow))


def _positions(kept: Checkpoint, graph: Graph) -> dict[str, str]:
    found = _positions_of(_flow_of(kept), kept)
    now = {node.id for node in graph.nodes if isinstance(node, Source)}
    return {name: each for name, each in found.items() if each is not None and name in now}


def _positions_of(flow: Graph, kept: Checkpoint) -> dict[str, str | None]:
    """Return where a checkpoint stands in every source."""
    if is_portable(kept.folder):
        return {name: source.position for name, source in kept.sources.items()}
    return by_source(flow, read_offsets(kept.folder, kept.batch))


def count_read_again(home: JobHome, kept: Checkpoint) -> dict[str, int | None]:
    """Return how many records lie between a checkpoint and where the job is, by source id."""
    flow = _flow_of(kept)
    positions = _positions_of(flow, kept)
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


def _find_present_positions(home: JobHome) -> dict[str, str | None] | None:
    """Return where the present run is, or None where its files cannot tell."""
    lineage = home.find_present_run()
    try:
        run = None if lineage is None else find_run(home, lineage)
        last = None if run is None else find_last_commit(run.checkpoint)
        if run is None or last is None:
            return {}
        return by_source(run.flow, read_offsets(run.checkpoint, last))
    except HeadgateError:
        return None


def _tables_of(graph: Graph, taken: Collection[str]) -> list[Source]:
    names = {
        node.table for node in graph.stateful() if isinstance(node, Enrich) and node.id in taken
    }
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


def _not_found(home: JobHome, found: str, kept: Sequence[Checkpoint]) -> HeadgateError:
    ids = [each.id for each in kept]
    near = did_you_mean(found, ids) if not ids else f"headgate restore {home.name} --from {ids[-1]}"
    return HeadgateError(
        "CHECKPOINT_NOT_FOUND",
        f"cannot restore job {home.name!r}: {found}"
        + (f"; it has {', '.join(ids)}" if ids else ""),
        hint=near or f"headgate checkpoints {home.name}",
    )
