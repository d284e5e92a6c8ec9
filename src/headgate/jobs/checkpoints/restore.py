"""Restoring a job: a new run that goes on from a checkpoint; the old run stays as it was."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from headgate._locations import Location
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.restore import fork
from headgate.checkpoints.sparklog import SOURCES, find_load_target, read_commit, read_offsets
from headgate.connectors.registry import get_connector
from headgate.engine.plan.clocks import read_partition_times, read_times
from headgate.engine.plan.flow_plan import source_name
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source
from headgate.jobs.checkpoints.portable import (
    EventTime,
    copy_states,
    is_portable,
    read_any,
    read_any_manifest,
    read_event_time,
)
from headgate.jobs.checkpoints.restore_plan import (
    RestorePlan,
    flow_of,
    positions_of,
    read_tables,
)
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import (
    Origin,
    Run,
    extend_history,
    forget_processes,
    new_run,
    operator_numbers,
    taken_folder,
)
from headgate.jobs.values import RunOptions

# Up to this many bytes every file is read and its checksum compared before it is used.
READ_WHOLE = 1 << 30


def restore_run(
    home: JobFolder,
    graph: Graph,
    plan: RestorePlan,
    options: RunOptions,
    *,
    now: datetime,
    reached: Mapping[str, str] | None = None,
) -> Run:
    """Make the new run on disk; the job goes on from it when it is started.

    Args:
        reached: Where sources go on, by source id; where the checkpoint stands if left out.
    """
    kept = read_any(plan.folder)
    facts = read_any_manifest(kept.folder).facts
    parallelism = options.parallelism or facts.parallelism
    run = new_run(
        home,
        graph,
        parallelism=parallelism,
        checkpoints=options.checkpoints,
        now=now,
        master=options.master,
    )
    positions = _positions(kept, graph) if reached is None else reached
    if plan.as_it_was and reached is None:
        fork(kept.folder, run.checkpoint, quick=_is_large(kept))
        origin = Origin(kept.id, kept.run, kept.batch, began=positions)
    else:
        folder = taken_folder(home, run)
        origin = _take_state(folder, kept, plan.state_taken, graph, positions)
    history = forget_processes(read_tables(facts), flow_of(kept), plan.state_taken)
    return replace(run, history=extend_history(history, graph), origin=origin)


def _take_state(
    folder: Location,
    kept: Checkpoint,
    taken: Collection[str],
    graph: Graph,
    positions: Mapping[str, str],
) -> Origin:
    """Bring the state that operators take over by uid into a folder of the new run."""
    portable = is_portable(kept.folder)
    if is_portable(kept.folder):
        copy_states(kept.folder, taken, folder)
    else:
        fork(kept.folder, folder, quick=_is_large(kept))
    reached = _event_time(kept, graph)
    numbers = operator_numbers(read_any_manifest(kept.folder).facts.operators)
    return Origin(
        kept.id,
        kept.run,
        kept.batch,
        folder=folder,
        operators={uid: number for uid, number in numbers.items() if uid in taken},
        positions=positions,
        began=positions,
        loading=() if portable else find_loading(folder, positions, graph),
        portable=portable,
        watermark_ms=reached.watermark_ms,
        times=reached.times,
        partition_times=reached.partitions,
        kept=folder / SOURCES,
    )


def _event_time(kept: Checkpoint, graph: Graph) -> EventTime:
    if is_portable(kept.folder):
        return read_event_time(kept.folder)
    ends = read_offsets(kept.folder, kept.batch)
    streams = graph.streams()
    return EventTime(
        read_commit(kept.folder, kept.batch).watermark_ms,
        read_times(ends, streams),
        read_partition_times(ends, streams),
    )


def _is_large(kept: Checkpoint) -> bool:
    """Tell whether reading every file would take longer than a restore should.

    What is not read here is checked by Spark and RocksDB as they load it.
    """
    return kept.full_bytes > READ_WHOLE


def find_loading(folder: Location, positions: Mapping[str, str], graph: Graph) -> tuple[str, ...]:
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


def _positions(kept: Checkpoint, graph: Graph) -> dict[str, str]:
    positions = positions_of(flow_of(kept), kept)
    now = {node.id for node in graph.nodes if isinstance(node, Source)}
    return {
        name: position
        for name, position in positions.items()
        if position is not None and name in now
    }
