"""Retained checkpoints and savepoints of a running job."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from headgate._clock import Clock
from headgate._locations import Location, parse_location
from headgate.checkpoints import savepoint as savepoints
from headgate.checkpoints.catalog import hold, keep, list_kept, remove, sweep
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.manifest import CheckpointFacts, SourceFacts, StateFacts
from headgate.checkpoints.retention import to_delete
from headgate.checkpoints.sparklog import (
    find_last_commit,
    find_start,
    read_batch,
    read_commit,
    read_offsets,
)
from headgate.checkpoints.stores import place_at
from headgate.engine.attempt.progress import BatchReport
from headgate.engine.plan.flow_plan import source_name
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Source
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, nothing_committed
from headgate.jobs.runs.reached import ReachedNote
from headgate.jobs.values import RunOptions

# The last moment that Python knows: where a drain leaves event time.
_LAST = datetime.max.replace(tzinfo=UTC) - datetime.fromtimestamp(0, UTC)


class CheckpointKeeper:
    """Keeps the checkpoints of one run while its query goes on.

    The supervisor's thread takes note of batches; linking and copying are functions for other
    threads. Spark keeps the files of its last 100 batches, so a batch can be linked while the query
    goes on.

    Args:
        on_forgotten: Called when a cancel has deleted the run's state.
        check: Raises once another process may have taken the job over.

    Attributes:
        kept: The newest checkpoint, as it was kept.
        positions: Where the newest checkpoint of this start stands in each source, by source id.
    """

    def __init__(
        self,
        home: JobFolder,
        run: Run,
        options: RunOptions,
        clock: Clock,
        *,
        on_forgotten: Callable[[], None] = lambda: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._home = home
        self._run = run
        self._options = options
        self._clock = clock
        self._on_forgotten = on_forgotten
        self._check = check
        self._folder = home.checkpoints_folder(run.lineage)
        self._records: dict[str, int] = {}
        self._last: BatchReport | None = None
        # The last batch, until a checkpoint of it is begun.
        self._unkept: BatchReport | None = None
        self._reached = ReachedNote(home, run)
        self._kept_at: float | None = None
        # Held while files are linked: a checkpoint and a savepoint may be of the same batch.
        self._linking = threading.Lock()
        self.positions: Mapping[str, str | None] = {}
        sweep(self._folder)
        known = list_kept(self._folder)
        self.kept: Checkpoint | None = known[-1] if known else None
        if known:
            sources = known[-1].sources
            self._records = {name: source.records for name, source in sources.items()}

    @property
    def newest(self) -> str | None:
        """The id of the newest checkpoint."""
        return None if self.kept is None else self.kept.id

    def attempt_running(self) -> None:
        """Take note of the query whose checkpoints are kept; its first batch has yet to begin."""
        self._reached.attempt_running()

    def batch_committed(self, report: BatchReport) -> None:
        """Take note of a batch."""
        self._last = report
        self._reached.batch_committed(report.batch)
        for name, source in report.sources.items():
            self._records[name] = self._records.get(name, 0) + source.rows
        self._unkept = report

    def take_due(self) -> Callable[[], Mapping[str, Any]] | None:
        """Return the function that keeps the last batch, once, if a checkpoint is due.

        A checkpoint is due with the first batch, and an interval after the one before, also if no
        further batch commits. The function may run on any thread, and returns the facts for the
        event.
        """
        report, now = self._unkept, self._clock.monotonic()
        every = self._options.checkpoint_every.total_seconds()
        if report is None or (self._kept_at is not None and now - self._kept_at < every):
            return None
        self._unkept = None
        self._kept_at = now
        return partial(self._keep, report.batch, report, dict(self._records))

    def keep_last(self) -> Mapping[str, Any] | None:
        """Keep the last batch that committed, if it is not kept yet; no batch commits meanwhile."""
        # A child may die between the commit of a batch and its report.
        batch = find_last_commit(self._run.checkpoint)
        if batch is None or (self.kept is not None and self.kept.batch == batch):
            return None
        return self._keep(batch, self._last, self._records)

    def find_starts(self) -> Mapping[str, str | None]:
        """Return where each source begins while no batch has committed; nothing after that."""
        if find_last_commit(self._run.checkpoint) is not None:
            return {}
        names = [source_name(node.id) for node in self._run.flow.nodes if isinstance(node, Source)]
        starts = {name: find_start(self._run.checkpoint, name) for name in names}
        return by_source(self._run.flow, starts)

    def begin_savepoint(self, to: str) -> Callable[[Callable[[], bool]], Mapping[str, Any]]:
        """Return the function that takes a savepoint of the last batch that committed.

        The function may run on any thread, asks its argument whether the savepoint was abandoned,
        and returns the facts for the event.

        Args:
            to: The savepoint's folder, which must not exist; empty for one in the job's own.
        """
        return partial(self._save, to, self._last, dict(self._records))

    def job_ended(self, *, canceled: bool) -> None:
        """Do what the settings say of checkpoints when a job ends."""
        if canceled and self._options.delete_on_cancel:
            for checkpoint in list_kept(self._folder):
                # What the user pinned is the user's.
                if not checkpoint.pinned:
                    remove(checkpoint.folder, check=self._check)
            self._check()
            place_at(self._run.checkpoint).remove_tree()
            left = list_kept(self._folder)
            self.kept = left[-1] if left else None
            # Batches of this lineage have been written: a start that counted them from 0 again
            # would find its output files in place, and write nothing.
            self._home.forget_run()
            self._on_forgotten()

    def _keep(
        self, batch: int, report: BatchReport | None, records: Mapping[str, int]
    ) -> Mapping[str, Any]:
        with self._linking:
            facts = self._facts(batch, report, records)
            kept = self._keep_batch(batch, facts)
            self.kept = kept
            self.positions = {name: source.position for name, source in facts.sources.items()}
            self._thin()
            self._reached.publish()
        return {
            "checkpoint": kept.id,
            "full_bytes": kept.full_bytes,
            "new_bytes": kept.new_bytes,
            "took_ms": _in_ms(kept.took),
        }

    def _keep_batch(self, batch: int, facts: CheckpointFacts) -> Checkpoint:
        return keep(
            self._run.checkpoint, batch, self._folder, facts, clock=self._clock, check=self._check
        )

    def _save(
        self,
        to: str,
        report: BatchReport | None,
        records: Mapping[str, int],
        is_abandoned: Callable[[], bool],
    ) -> Mapping[str, Any]:
        """Link the last batch that committed out of Spark's folder, and copy the linked files.

        They are held meanwhile: copying may take longer than Spark keeps the files of a batch, and
        longer than checkpoints are retained.
        """
        with ExitStack() as copying:
            with self._linking:
                batch = find_last_commit(self._run.checkpoint)
                if batch is None:
                    raise nothing_committed("take a savepoint", self._home.name)
                facts = self._facts(batch, report, records)
                kept = self._keep_batch(batch, facts)
                copying.enter_context(hold(kept.folder, job=self._home.name))
            name = f"sp-{self._clock.now():%Y%m%dT%H%M%S}-{batch}"
            folder = parse_location(to) if to else self._home.savepoints_folder / name
            taken = savepoints.create_from(
                kept, folder, is_abandoned=is_abandoned, clock=self._clock
            )
        return {
            "savepoint": taken.id,
            "folder": str(folder.absolute()),
            "batch": batch,
            "bytes": taken.full_bytes,
            "took_ms": _in_ms(taken.took),
        }

    def _thin(self) -> None:
        kept = {checkpoint.id: checkpoint for checkpoint in list_kept(self._folder)}
        for name in to_delete(
            list(kept.values()),
            retain=self._options.retain,
            retain_for=self._options.retain_for,
            now=self._clock.now(),
        ):
            remove(kept[name].folder, check=self._check)

    def _facts(
        self, batch: int, report: BatchReport | None, records: Mapping[str, int]
    ) -> CheckpointFacts:
        if report is not None and report.batch != batch:
            report = None
        positions = read_offsets(self._run.checkpoint, batch)
        return CheckpointFacts(
            job=self._home.name,
            lineage=self._run.lineage,
            completed_at=_completed(self._run.checkpoint, batch, report),
            duration=timedelta(0) if report is None else report.duration,
            sources={
                name: SourceFacts(position, records.get(name, 0))
                for name, position in by_source(self._run.flow, positions).items()
            },
            state={
                uid: StateFacts(state.rows, state.bytes)
                for uid, state in (report.state.items() if report else ())
            },
            parallelism=self._run.parallelism,
            operators=self._run.operators,
            tables={
                table: [schema.to_json() for schema in schemas]
                for table, schemas in self._run.history.items()
            },
            keys={table: list(key) for table, key in self._run.keys.items()},
            flow=json.loads(self._run.flow.to_json()),
            watermark=_watermark(self._run.checkpoint, batch),
            state_format=self._run.state_format,
        )


def _in_ms(took: timedelta | None) -> int | None:
    return None if took is None else round(took.total_seconds() * 1000)


def _watermark(checkpoint: Location, batch: int) -> datetime | None:
    """Return the watermark that the batch after this one begins with."""
    watermark = read_commit(checkpoint, batch).watermark_ms
    if watermark <= 0:
        return None
    return datetime.fromtimestamp(0, UTC) + min(timedelta(milliseconds=watermark), _LAST)


def _completed(checkpoint: Location, batch: int, report: BatchReport | None) -> datetime:
    if report is not None:
        return report.started + report.duration
    return datetime.fromtimestamp(read_batch(checkpoint, batch).timestamp_ms / 1000, UTC)


def by_source(flow: Graph, positions: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return positions by source id; Spark knows sources by names of its own."""
    ids = {source_name(node.id): node.id for node in flow.nodes if isinstance(node, Source)}
    return {ids[name]: position for name, position in positions.items() if name in ids}
