"""Counts what a job does: the only writer of its counters."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from headgate._clock import Clock
from headgate.engine.attempt.executors import Executors
from headgate.engine.attempt.progress import BatchReport
from headgate.engine.attempt.vitals import Vitals
from headgate.errors import HeadgateError
from headgate.flow.graph.graph import Graph
from headgate.flow.operators.nodes import Port
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.states import JobState, present_name
from headgate.jobs.metrics.counter_file import read_counters, write_counters
from headgate.jobs.metrics.executor_file import forget_executors, write_executors
from headgate.jobs.metrics.vitals_file import forget_vitals, write_vitals

_EVERY_S = 1.0
# The cause of a start after the supervisor itself was killed.
_SUPERVISOR_DIED = "SUPERVISOR_DIED"


class Meter:
    """The counters of one job, continued from its file; called on the thread of its supervisor.

    The file is behind by a second at most. A supervisor that is killed loses what it did not write,
    which no reader has seen, so that no counter decreases.

    Args:
        home: With the status of the job's last start, which is read here.
        ports: The operator and the output of each port, by its name.
    """

    def __init__(
        self, home: JobFolder, clock: Clock, ports: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._home = home
        self._clock = clock
        self._ports = ports or {}
        self._counters = read_counters(home)
        self._written = self._counters
        self._written_at = float("-inf")
        # Those of the present driver, whose times begin with zero.
        self._vitals: Vitals | None = None
        if _was_cut_off(home):
            self.restarted(_SUPERVISOR_DIED)

    def batch_committed(self, report: BatchReport) -> None:
        """Count a batch."""
        self._counters = self._counters.with_batch(report, self._ports)

    def checkpoint_kept(self) -> None:
        """Count a checkpoint."""
        self._counters = replace(self._counters, checkpoints=self._counters.checkpoints + 1)

    def checkpoint_failed(self) -> None:
        """Count a checkpoint that could not be kept."""
        failures = self._counters.checkpoint_failures + 1
        self._counters = replace(self._counters, checkpoint_failures=failures)

    def savepoint_taken(self) -> None:
        """Count a savepoint."""
        self._counters = replace(self._counters, savepoints=self._counters.savepoints + 1)

    def savepoint_failed(self) -> None:
        """Count a savepoint that could not be taken."""
        failures = self._counters.savepoint_failures + 1
        self._counters = replace(self._counters, savepoint_failures=failures)

    def attempt_launched(self) -> None:
        """Forget the driver before: the next vitals are those of another one."""
        self._vitals = None
        with contextlib.suppress(OSError):
            forget_vitals(self._home)
            forget_executors(self._home)

    def measured(self, vitals: Vitals, executors: Executors) -> None:
        """Take note of what the driver and its executors use, and count the driver's times."""
        self._counters = self._counters.with_times(self._vitals, vitals)
        self._vitals = vitals
        with contextlib.suppress(OSError):
            write_vitals(self._home, vitals)
            write_executors(self._home, executors)

    def restarted(self, cause: str) -> None:
        """Count an attempt that follows another one.

        Args:
            cause: The code of the failure.
        """
        self._counters = self._counters.with_restart(cause)

    def tick(self) -> None:
        """Write the counters if they have changed and the last time is a second ago."""
        if self._clock.monotonic() - self._written_at >= _EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write the counters if they have changed."""
        if self._counters is self._written:
            return
        self._written_at = self._clock.monotonic()
        # The job goes on with a full disk, and the next write has all that was counted.
        with contextlib.suppress(OSError):
            write_counters(self._home, self._counters)
            self._written = self._counters


def ports_of(graph: Graph) -> dict[str, tuple[str, str]]:
    """Return the operator and the output of each port of a flow, by the port's name."""
    ports = {
        str(Port(node.id, output)): (node.id, output)
        for node in graph.nodes
        for output in node.outputs
    }
    return ports | {f"{node.id}!": (node.id, "!") for node in graph.nodes}


def _was_cut_off(home: JobFolder) -> bool:
    """Tell whether the supervisor of the job's last start ended without a final state."""
    try:
        status = home.find_json("status.json") or {}
    except HeadgateError:
        # A job starts without it, too.
        return False
    state = status.get("state")
    final = [state for state in JobState if state.is_final]
    return state is not None and present_name(str(state)) not in final
