"""A new run that leaves another one before its open batch, or behind it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headgate._locations import Location
from headgate.checkpoints.catalog import read_kept
from headgate.checkpoints.restore import fork_batch
from headgate.checkpoints.sparklog import SOURCES
from headgate.checkpoints.stores import files_at, place_at
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source
from headgate.flow.state.changes import find_state_change
from headgate.jobs.checkpoints.keeper import CheckpointKeeper
from headgate.jobs.checkpoints.restore import find_loading
from headgate.jobs.runs.lineage import (
    Origin,
    Run,
    check_tables,
    extend_history,
    forget_processes,
    taken_folder,
)
from headgate.jobs.startup.open_batch import BegunBatch
from headgate.jobs.startup.start import Start
from headgate.jobs.values import OpenBatch

# What a run comes from that begins where another began, which committed nothing.
_BEGINNING = "start"


def leave_batch(start: Start, run: Run, batch: BegunBatch) -> tuple[Run, Sequence[str]]:
    """Make a new run on disk that goes on where a run was before its open batch.

    With `--open-batch skip` it goes on where the batch ends, with the state of before it. The
    warnings are those of a restore.

    Raises:
        HeadgateError: What a restore refuses.
    """
    home = start.home
    skips = start.options.consent.open_batch is OpenBatch.SKIP
    if batch.last is None:
        return _begin_again(start, run, batch, skips=skips), ()
    # Spark still has the files of the last batch, even if it was not kept as a checkpoint.
    CheckpointKeeper(home, run, start.options, start.clock).keep_last()
    kept = read_kept(home.checkpoints_folder(run.lineage) / f"chk-{batch.last}")
    reached = _known(batch.ends, start.graph) if skips else None
    plan = start.plan_restore(kept)
    return start.restore(plan, reached=reached), plan.warnings


def _begin_again(start: Start, run: Run, batch: BegunBatch, *, skips: bool) -> Run:
    """Make a run that begins where another one began, of which no batch has committed."""
    home, graph = start.home, start.graph
    if not skips:
        _check_noted(home.name, batch)
    made = start.make_run(parallelism=run.parallelism)
    positions = _known(batch.ends if skips else batch.starts, graph)
    loading = (
        find_loading(run.checkpoint, positions, graph)
        if skips
        else tuple(table.id for table in graph.tables())
    )
    before = run.origin
    if before is None or before.folder is None:
        origin = Origin(
            _BEGINNING,
            run.lineage,
            -1,
            positions=positions,
            began=positions,
            loading=loading,
            kept=run.checkpoint / SOURCES,
        )
        return replace(made, origin=origin)
    # What the run took over is not in any commit of its own yet: the new one takes it over.
    taken = _check_taken(home.name, run, before, graph, start.options.drop_state)
    folder = taken_folder(home, made)
    _copy(before, folder)
    origin = replace(
        before,
        folder=folder,
        operators={uid: number for uid, number in before.operators.items() if uid in taken},
        positions=positions,
        began=positions,
        loading=loading if skips else before.loading,
        kept=run.checkpoint / SOURCES,
    )
    history = forget_processes(run.history, run.flow, taken)
    return replace(made, origin=origin, history=extend_history(history, graph))


def _check_noted(job: str, batch: BegunBatch) -> None:
    """Refuse to begin again without a recorded start position: the latest record is another now."""
    for name, end in batch.ends.items():
        if end is not None and batch.starts.get(name) is None:
            raise HeadgateError(
                "BATCH_OPEN",
                f"cannot repeat batch {batch.number} of job {job!r}: its start position in "
                f"{name!r} was not recorded",
                hint="run the unchanged flow, or add --open-batch skip or --fresh",
            )


def _known(positions: Mapping[str, str | None], graph: Graph) -> dict[str, str]:
    sources = {node.id for node in graph.nodes if isinstance(node, Source)}
    return {
        name: position
        for name, position in positions.items()
        if position is not None and name in sources
    }


def _check_taken(
    job: str, run: Run, origin: Origin, graph: Graph, drop: Collection[str]
) -> set[str]:
    """Return the operators that take over what the run before had taken over."""
    now = {node.id for node in graph.stateful()}
    for uid in origin.operators:
        if uid not in now and uid not in drop:
            raise HeadgateError(
                "RESTORE_UNKNOWN_OPERATOR",
                f"cannot resume job {job!r}: run {run.lineage} took over state of operator "
                f"{uid!r}, and the flow has no such uid",
                hint=f"keep the uid, or add --drop-state {uid}",
            )
    taken = {uid for uid in origin.operators if uid in now and uid not in drop}
    for uid in taken:
        change = find_state_change(run.flow, graph, uid)
        if change is not None:
            raise HeadgateError(
                "STATE_INCOMPATIBLE",
                f"cannot resume job {job!r}: operator {uid!r} {change}",
                hint=f"keep it unchanged, or add --drop-state {uid}",
            )
    if taken:
        check_tables(run.history, run.keys, graph.tables(), job=job)
    return taken


def _copy(origin: Origin, into: Location) -> None:
    source = origin.folder
    assert source is not None, "the caller has checked it"
    if not origin.portable:
        fork_batch(source, origin.batch, into)
        return
    files = files_at(source)
    with place_at(into).publishing() as draft:
        draft.bring(files, files.walk(""))
