"""The states of a job, and the table of all moves between them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

# As earlier releases wrote it.
_OLD_CANCELING = "CANCELLING"


class JobState(enum.StrEnum):
    """What a job is doing."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    PAUSED = "PAUSED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    RESCALING = "RESCALING"
    FAILED = "FAILED"
    FINISHED = "FINISHED"

    @classmethod
    def _missing_(cls, value: object) -> JobState | None:
        return cls.CANCELING if value == _OLD_CANCELING else None

    @property
    def is_final(self) -> bool:
        """Whether the job stays as it is until a user starts it again."""
        return not TRANSITIONS[self]


def present_name(state: str) -> str:
    """Return a state or the kind of an event, of any release, as this one names it."""
    return JobState.CANCELING.value if state == _OLD_CANCELING else state


def _states(names: str) -> frozenset[JobState]:
    return frozenset(map(JobState, names.split()))


# The machine raises on a move that is not listed here. RESCALING stands between an attempt with one
# parallelism and an attempt with another. RESTARTING is the only state between attempts in which
# the job waits, so it moves to STOPPED and CANCELED without a state in between. While a savepoint
# is being taken, a job without an attempt waits in STOPPING or CANCELING.
TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.STARTING: _states(
        "RUNNING PAUSED RESTARTING STOPPING STOPPED CANCELING FAILED FINISHED"
    ),
    JobState.RUNNING: _states(
        "PAUSED RESTARTING RESCALING STOPPING STOPPED CANCELING FAILED FINISHED"
    ),
    JobState.PAUSED: _states(
        "RUNNING RESTARTING RESCALING STOPPING STOPPED CANCELING FAILED FINISHED"
    ),
    JobState.RESTARTING: _states("STARTING STOPPING STOPPED CANCELING CANCELED"),
    JobState.STOPPING: _states("STOPPED CANCELING FAILED FINISHED"),
    JobState.CANCELING: _states("CANCELED"),
    JobState.RESCALING: _states("STARTING CANCELING FAILED"),
    JobState.STOPPED: frozenset(),
    JobState.CANCELED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.FINISHED: frozenset(),
}
