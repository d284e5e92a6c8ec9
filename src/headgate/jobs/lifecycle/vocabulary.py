"""The words of a job's life: what can happen to it, and what is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.jobs.lifecycle.restart import Failure
from headgate.jobs.lifecycle.states import JobState


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
        caught_up: Whether it ended because all that was there had been read.
    """

    at: datetime
    caught_up: bool


@dataclass(frozen=True, slots=True)
class RestartDue:
    """The wait before the next attempt is over."""

    at: datetime


@dataclass(frozen=True, slots=True)
class StopWanted:
    """The user wants the job to end between two batches.

    Attributes:
        drain: Whether what is there is read first.
        savepoint: Where a savepoint of the end goes; empty for the job's own folder, None for
            no savepoint.
        intent: The number of the intent that asked; 0 for none.
    """

    at: datetime
    drain: bool = False
    savepoint: str | None = None
    intent: int = 0


@dataclass(frozen=True, slots=True)
class CancelWanted:
    """The user wants the job to end at once."""

    at: datetime


@dataclass(frozen=True, slots=True)
class PauseWanted:
    """The user wants the job to read nothing for a while."""

    at: datetime


@dataclass(frozen=True, slots=True)
class ResumeWanted:
    """The user wants a paused job to go on."""

    at: datetime


@dataclass(frozen=True, slots=True)
class RestartWanted:
    """The user wants the attempt to end between two batches, and starts the job again then."""

    at: datetime


@dataclass(frozen=True, slots=True)
class SavepointWanted:
    """The user wants a savepoint of the last batch that committed; the job goes on.

    Attributes:
        to: Where the savepoint goes; empty for the job's own folder.
        intent: The number of the intent that asked; 0 for none.
    """

    at: datetime
    to: str = ""
    intent: int = 0


@dataclass(frozen=True, slots=True)
class Interrupted:
    """SIGINT or SIGTERM came: a job that ends already is canceled, any other job is stopped."""

    at: datetime


@dataclass(frozen=True, slots=True)
class HostStopWanted:
    """The program that runs the job wants it to end; a job that ends already is left alone."""

    at: datetime


@dataclass(frozen=True, slots=True)
class SavepointEnded:
    """The savepoint is taken, or has failed, or was abandoned; nothing of it runs any more."""

    at: datetime


Request = (
    StopWanted
    | CancelWanted
    | PauseWanted
    | ResumeWanted
    | RestartWanted
    | SavepointWanted
    | Interrupted
    | HostStopWanted
)
Event = (
    Submitted
    | AttemptRunning
    | AttemptFailed
    | AttemptEnded
    | RestartDue
    | SavepointEnded
    | Request
)


@dataclass(frozen=True, slots=True)
class LaunchAttempt:
    """Start the attempt of this number; no other one is alive."""

    attempt: int


@dataclass(frozen=True, slots=True)
class ScheduleRestart:
    """Send RestartDue after this long."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class OrderStop:
    """Tell the attempt to end before its next batch; one that is still starting, too."""


@dataclass(frozen=True, slots=True)
class OrderDrain:
    """Tell the attempt to read what is there, then to end."""


@dataclass(frozen=True, slots=True)
class OrderHold:
    """Tell the attempt to begin no batch; one that is still starting, too."""


@dataclass(frozen=True, slots=True)
class OrderOpen:
    """Tell the attempt to begin batches again."""


@dataclass(frozen=True, slots=True)
class KillAttempt:
    """End the attempt at once, in the middle of a batch if need be."""


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
    """Give up the savepoint that is being taken; SavepointEnded still follows."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing follows: write the last status and let go of the job."""

    state: JobState


Action = (
    LaunchAttempt
    | ScheduleRestart
    | OrderStop
    | OrderDrain
    | OrderHold
    | OrderOpen
    | KillAttempt
    | TakeSavepoint
    | AbandonSavepoint
    | Finish
)
