"""The words of a job's life: the events that the machine takes, and the actions it decides on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.jobs.lifecycle.failures import Failure
from headgate.jobs.lifecycle.states import JobState


class Verb(enum.StrEnum):
    """What a user can ask of a running job."""

    STOP = "stop"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    SAVEPOINT = "savepoint"
    RESTART = "restart"


class Order(enum.StrEnum):
    """What a supervisor orders a running attempt to do; a starting attempt follows it, too."""

    # End before the next batch.
    STOP = "stop"
    # Read all available records, then end.
    DRAIN = "drain"
    # Begin no batch.
    HOLD = "hold"
    # Begin batches again.
    OPEN = "open"


# Events.


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job is to run; the first event of every machine."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AttemptRunning:
    """The attempt that was launched has begun to work."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """The attempt is gone, and not because it was asked to go."""

    at: datetime
    failure: Failure


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The attempt ended cleanly, between two batches.

    Attributes:
        caught_up: Whether it ended because it had read all available records.
    """

    at: datetime
    caught_up: bool


@dataclass(frozen=True, slots=True)
class RestartDue:
    """The wait before the next attempt is over."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """A user asks something of the job.

    Attributes:
        drain: Whether a stop reads all available records first.
        savepoint: Where the savepoint goes; empty for the job's own folder, None for a stop
            without a savepoint.
        intent: The number of the intent that asked; 0 for none.
    """

    at: datetime
    verb: Verb
    drain: bool = False
    savepoint: str | None = None
    intent: int = 0


@dataclass(frozen=True, slots=True)
class Interrupted:
    """SIGINT or SIGTERM came: a job that is already ending is canceled, any other is stopped."""

    at: datetime


@dataclass(frozen=True, slots=True)
class HostStopWanted:
    """The program that runs the job wants it to end; a job that is already ending goes on."""

    at: datetime


@dataclass(frozen=True, slots=True)
class SavepointEnded:
    """The savepoint is taken, has failed, or was abandoned; its thread has ended."""

    at: datetime


Request = Wanted | Interrupted | HostStopWanted
Event = (
    Submitted
    | AttemptRunning
    | AttemptFailed
    | AttemptEnded
    | RestartDue
    | SavepointEnded
    | Request
)


# Actions.


@dataclass(frozen=True, slots=True)
class LaunchAttempt:
    """Start the attempt of this number; no other one is alive."""

    attempt: int


@dataclass(frozen=True, slots=True)
class ScheduleRestart:
    """Send RestartDue after this long."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class OrderAttempt:
    """Send an order to the attempt."""

    order: Order


@dataclass(frozen=True, slots=True)
class KillAttempt:
    """End the attempt at once, even in the middle of a batch."""


@dataclass(frozen=True, slots=True)
class TakeSavepoint:
    """Begin a savepoint of the last batch that committed, and send SavepointEnded after it.

    Attributes:
        to: Where the savepoint goes; empty for the job's own folder.
        intent: The number of the intent that asked; 0 for none.
    """

    to: str
    intent: int = 0


@dataclass(frozen=True, slots=True)
class AbandonSavepoint:
    """Abandon the savepoint that is being taken; SavepointEnded still follows."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Write the last status and release the job: no event follows."""

    state: JobState


Action = (
    LaunchAttempt
    | ScheduleRestart
    | OrderAttempt
    | KillAttempt
    | TakeSavepoint
    | AbandonSavepoint
    | Finish
)
