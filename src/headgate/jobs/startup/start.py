"""A start of a job, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from headgate._clock import Clock
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.flow.graph.graph import Graph
from headgate.jobs.checkpoints.restore import restore_run
from headgate.jobs.checkpoints.restore_plan import RestorePlan, plan_restore
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.runs.lineage import Run, new_run
from headgate.jobs.values import RunOptions


@dataclass(frozen=True, slots=True)
class Start:
    """A start of a job whose run is not open yet.

    Attributes:
        home: Locked.
        graph: The flow, its topics bound.
    """

    home: JobFolder
    graph: Graph
    options: RunOptions
    clock: Clock

    def make_run(self, *, parallelism: int) -> Run:
        """Return a new run that starts empty.

        Args:
            parallelism: State partitions, unless the options name another number.
        """
        return new_run(
            self.home,
            self.graph,
            parallelism=self.options.parallelism or parallelism,
            checkpoints=self.options.checkpoints,
            now=self.clock.now(),
            master=self.options.master,
        )

    def plan_restore(self, checkpoint: Checkpoint) -> RestorePlan:
        """Return what a restore from a checkpoint does, or refuse what it cannot do."""
        return plan_restore(self.home, self.graph, checkpoint, self.options)

    def restore(self, plan: RestorePlan, *, reached: dict[str, str] | None = None) -> Run:
        """Return the new run of a restore, with its files on disk.

        Args:
            reached: Where sources go on, by source id; where the checkpoint stands if left out.
        """
        now = self.clock.now()
        return restore_run(self.home, self.graph, plan, self.options, now=now, reached=reached)
