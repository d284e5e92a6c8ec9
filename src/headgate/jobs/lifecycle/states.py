"""The states of a job, and the moves between them: all of them, in one table."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class JobState(enum.StrEnum):
    """What a job is doing."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    PAUSED = "PAUSED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    CANCELLING = "CANCELLING"
    CANCELED = "CANCELED"
    RESCALING = "RESCALING"
    FAILED = "FAILED"
    FINISHED = "FINISHED"

    @property
    def is_final(self) -> bool:
        """Whether the job does nothing more until somebody starts it again."""
        return not TRANSITIONS[self]


# A move that is not in here is a bug, and raises. RESCALING stands between an attempt with one
# parallelism and an attempt with another. RESTARTING is the only state between attempts in which
# the job waits, so it is left for STOPPED and CANCELED without a state in between. While a
# savepoint is being taken, a job that has no attempt left waits in STOPPING or CANCELLING.
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.STARTING: frozenset(
        {
            JobState.RUNNING,
            JobState.PAUSED,
            JobState.RESTARTING,
            JobState.STOPPING,
            JobState.STOPPED,
            JobState.CANCELLING,
            JobState.FAILED,
            JobState.FINISHED,
        }
    ),
    JobState.RUNNING: frozenset(
        {
            JobState.PAUSED,
            JobState.RESTARTING,
            JobState.STOPPING,
            JobState.STOPPED,
            JobState.CANCELLING,
            JobState.RESCALING,
            JobState.FAILED,
            JobState.FINISHED,
        }
    ),
    JobState.PAUSED: frozenset(
        {
            JobState.RUNNING,
            JobState.RESTARTING,
            JobState.STOPPING,
            JobState.STOPPED,
            JobState.CANCELLING,
            JobState.RESCALING,
            JobState.FAILED,
            JobState.FINISHED,
        }
    ),
    JobState.RESTARTING: frozenset(
        {
            JobState.STARTING,
            JobState.STOPPING,
            JobState.STOPPED,
            JobState.CANCELLING,
            JobState.CANCELED,
        }
    ),
    JobState.STOPPING: frozenset(
        {JobState.STOPPED, JobState.CANCELLING, JobState.FAILED, JobState.FINISHED}
    ),
    JobState.CANCELLING: frozenset({JobState.CANCELED}),
    JobState.RESCALING: frozenset({JobState.STARTING, JobState.CANCELLING, JobState.FAILED}),
    JobState.STOPPED: frozenset(),
    JobState.CANCELED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.FINISHED: frozenset(),
}
