"""The scope of an audit: one run, its flow, and the range of each stream."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headgate._locations import Location
from headgate.checkpoints.catalog import list_kept, read_manifest
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.sparklog import find_last_commit, find_start, read_offsets
from headgate.engine.plan.flow_plan import source_name
from headgate.engine.settings import Delivery
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.names import did_you_mean
from headgate.jobs.checkpoints.keeper import by_source
from headgate.jobs.checkpoints.listing import checkpoint_not_found
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, find_run, walk_lineage


@dataclass(frozen=True, slots=True)
class Scope:
    """The audited part of one run.

    Attributes:
        batch: The last batch that counts.
        begins: The start position of each stream, by source id; None if it was not recorded.
        ends: The position after the last batch, by source id; None before its first record.
        notes: Further remarks.
        earlier: The ancestors of this run, and the runs that restores left behind, each with the
            last batch whose rows are before the range.
    """

    job: str
    lineage: str
    flow: Graph
    batch: int
    begins: Mapping[str, str | None]
    ends: Mapping[str, str | None]
    delivery: Delivery
    notes: tuple[str, ...] = ()
    earlier: Mapping[str, int] = field(default_factory=dict)

    @property
    def checkpoint(self) -> str:
        return f"chk-{self.batch}"


def find_scope(home: JobFolder, *, lineage: str | None, at: str | None) -> Scope:
    """Return the scope of an audit.

    Args:
        lineage: A run of the job, without its ancestors; by default its present one, with them.
        at: A kept checkpoint of the run; by default its last committed batch.

    Raises:
        HeadgateError: JOB_NEVER_RAN, RUN_NOT_FOUND, NOTHING_COMMITTED, CHECKPOINT_NOT_FOUND.
    """
    run = _get_run(home, lineage)
    kept = list_kept(home.checkpoints_folder(run.lineage))
    batch, positions, folders = _reached(home, run, kept, at)
    streams = [node.id for node in run.flow.streams()]
    past = [] if lineage is not None else list(_past(home, run))
    alike = list(itertools.takewhile(lambda other: _ends(other[0]) == _ends(run), past))
    oldest = alike[-1][0] if alike else run
    seen: list[Location] = folders if oldest is run else [oldest.checkpoint]
    return Scope(
        home.name,
        run.lineage,
        run.flow,
        batch,
        {name: _begin(oldest, name, seen) for name in streams},
        {name: positions.get(name) for name in streams},
        _delivery(home),
        (*_changes(run, kept), *_shortened(past, alike)),
        {
            **(dict.fromkeys(_family(home, run), -1) if lineage is None else {}),
            **{other.lineage: after for other, after in past[len(alike) :]},
        },
    )


def _family(home: JobFolder, run: Run) -> Iterator[str]:
    """Yield the other runs of the job with the same first ancestor."""
    root = _root(home, run)
    for folder in sorted((home.path / "runs").iterdir()):
        other = None if folder.name == run.lineage else find_run(home, folder.name)
        if other is not None and _root(home, other) == root:
            yield other.lineage


def _root(home: JobFolder, run: Run) -> str:
    return [run.lineage, *(ancestor.lineage for ancestor, _ in _past(home, run))][-1]


def _past(home: JobFolder, run: Run) -> Iterator[tuple[Run, int]]:
    """Yield the ancestors of a run, newest first, each with its last batch before the restore."""
    for ancestor in walk_lineage(home, run.lineage):
        # A savepoint may be of another job, and a run's folder may have been removed.
        if ancestor.run is not None and ancestor.last_batch is not None:
            yield ancestor.run, ancestor.last_batch


def _ends(run: Run) -> tuple[object, ...]:
    """Return the topics of a run; runs with the same topics are audited as one."""
    flow = run.flow
    streams = {node.id: node.topic for node in flow.streams()}
    return streams, {node.id: node.topic for node in flow.outputs()}, flow.dead_letters


def _shortened(past: list[tuple[Run, int]], alike: list[tuple[Run, int]]) -> Iterator[str]:
    if len(alike) < len(past):
        other = past[len(alike)][0].lineage
        yield (
            f"run {other} read or wrote other topics: its rows from before the audited range are "
            "ignored"
        )


def _get_run(home: JobFolder, lineage: str | None) -> Run:
    wanted = lineage or home.find_present_run()
    if wanted is None:
        wanted = (home.find_json("status.json") or {}).get("lineage")
    if wanted is None:
        raise HeadgateError(
            "JOB_NEVER_RAN",
            f"cannot audit job {home.name!r}: it has never run",
            hint=f"headgate show {home.name}",
        )
    run = find_run(home, wanted)
    if run is None:
        known = sorted(run.name for run in (home.path / "runs").glob("*") if run.is_dir())
        raise HeadgateError(
            "RUN_NOT_FOUND",
            f"cannot audit run {wanted!r} of job {home.name!r}: it has no such run",
            hint=did_you_mean(wanted, known),
        )
    return run


def _reached(
    home: JobFolder, run: Run, kept: list[Checkpoint], at: str | None
) -> tuple[int, Mapping[str, str | None], list[Location]]:
    """Return the last batch, its position in each source, and folders with start positions."""
    if at is not None:
        for checkpoint in kept:
            if checkpoint.id in (at, f"chk-{at}"):
                return checkpoint.batch, _positions(checkpoint), [run.checkpoint, checkpoint.folder]
        raise checkpoint_not_found(at, kept, home.name)
    last = find_last_commit(run.checkpoint)
    if last is not None:
        positions = by_source(run.flow, read_offsets(run.checkpoint, last))
        return last, positions, [run.checkpoint]
    if kept:
        return kept[-1].batch, _positions(kept[-1]), [kept[-1].folder]
    raise HeadgateError(
        "NOTHING_COMMITTED",
        f"cannot audit run {run.lineage!r} of job {home.name!r}: no batch of it has committed yet",
        hint=f"headgate show {home.name}",
    )


def _positions(kept: Checkpoint) -> dict[str, str | None]:
    return {name: source.position for name, source in kept.sources.items()}


def _begin(run: Run, source: str, folders: list[Location]) -> str | None:
    # A restored run has a copy of the first run's start position, which is not its own.
    if run.origin is not None and source in run.origin.began:
        return run.origin.began[source]
    starts = (find_start(folder, source_name(source)) for folder in folders)
    return next((start for start in starts if start is not None), None)


def _delivery(home: JobFolder) -> Delivery:
    options = (home.find_json("job.json") or {}).get("options") or {}
    return Delivery(options.get("delivery", Delivery.EXACTLY_ONCE))


def _changes(run: Run, kept: list[Checkpoint]) -> list[str]:
    # Graphs are compared: JSON of an older release lacks fields that change nothing.
    flows = ((checkpoint.id, _find_flow(checkpoint)) for checkpoint in kept)
    changed = [name for name, flow in flows if flow is not None and flow != run.flow]
    if not changed:
        return []
    return [
        f"the flow was changed since {changed[-1]}, and the run went on: older rows in outputs "
        "that it no longer has are ignored"
    ]


def _find_flow(checkpoint: Checkpoint) -> Graph | None:
    """Return the flow of a checkpoint, or None if the job has removed it meanwhile."""
    try:
        return Graph.from_json(json.dumps(read_manifest(checkpoint.folder).facts.flow))
    except HeadgateError:
        return None
