"""What verbs ask of the jobs of one place: a home on this machine, or a server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from headgate.jobs.service import (
    NO_CONSENT,
    AnyCheckpoint,
    Consent,
    DeadLetter,
    DeadLetters,
    Detached,
    Events,
    Exceptions,
    GraphView,
    JobDetails,
    JobView,
    Log,
    Loss,
    Patience,
    PortableSavepoint,
    Replayed,
    ReplayProgress,
    RestorePlan,
    Savepoint,
    StateHistory,
    StateOverview,
    StateRows,
    StateValue,
    Stopped,
)


class State(Protocol):
    """The state of the jobs of one place; questions as those to a `StateDesk`."""

    def look_up(self, job: str, uid: str, key: str, *, at: str | None = None) -> StateValue:
        """Return what an operator holds under a key."""

    def history(self, job: str, uid: str, key: str) -> StateHistory:
        """Return what an operator held under a key at every retained checkpoint, and now."""

    def first_rows(
        self, job: str, uid: str, *, at: str | None = None, limit: int = 50
    ) -> StateRows:
        """Return the first rows that an operator holds."""

    def query(
        self,
        job: str,
        sql: str,
        *,
        uid: str | None = None,
        at: str | None = None,
        limit: int = 1000,
    ) -> StateRows:
        """Return the first rows of a query over state."""


class Jobs(Protocol):
    """The jobs of one place.

    Each method does what the function of that name in `jobs.service` does, raises what it raises,
    and returns the same values wherever the jobs are.
    """

    @property
    def where(self) -> str:
        """The place, as a person names it."""

    def list_jobs(self) -> list[JobView]:
        """Return every job, by name."""

    def list_names(self) -> list[str]:
        """Return the names of all jobs."""

    def look_at(self, job: str) -> JobView:
        """Return one job in short, with all that its supervisor last told."""

    def show_job(self, job: str) -> JobDetails:
        """Return all of one job."""

    def start_job(self, job: str, *, consent: Consent = NO_CONSENT) -> Detached:
        """Start a job again as it was last run, in the background."""

    def stop_job(
        self, job: str, *, savepoint: str | None, drain: bool, patience: Patience
    ) -> Stopped:
        """Stop a job between two batches, and wait until it has let go."""

    def cancel_job(self, job: str, *, patience: Patience) -> JobView:
        """End a job at once, and wait until it has let go."""

    def foresee_cancel(self, job: str) -> Loss:
        """Return what a cancel of a job would take along; nothing is done."""

    def restart_job(
        self, job: str, *, patience: Patience, consent: Consent = NO_CONSENT
    ) -> Detached:
        """Stop a job between two batches and start it again."""

    def pause_job(self, job: str, *, patience: Patience) -> JobView:
        """Make a job read nothing, and wait until it does."""

    def resume_job(self, job: str, *, patience: Patience) -> JobView:
        """Let a paused job go on, and wait until it does."""

    def take_savepoint(self, job: str, *, to: Path | None, patience: Patience) -> Savepoint:
        """Take a savepoint of a job's last batch."""

    def take_portable_savepoint(
        self, job: str, *, to: Path | None, patience: Patience
    ) -> PortableSavepoint:
        """Write the state of a job's last batch as Parquet, by operator."""

    def list_checkpoints(self, job: str, *, every_run: bool = False) -> list[AnyCheckpoint]:
        """Return the checkpoints and savepoints of a job, oldest first."""

    def get_checkpoint(self, job: str, checkpoint: str) -> AnyCheckpoint:
        """Return one checkpoint, with what is wrong with its files."""

    def pin_checkpoint(self, job: str, checkpoint: str, *, pinned: bool) -> AnyCheckpoint:
        """Make a checkpoint stay whatever is retained, or let it go when its time comes."""

    def preview_restore(
        self, job: str, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        """Return what going back to a checkpoint would do; nothing is done."""

    def tail_log(self, job: str, log: Log, *, last: int) -> list[bytes]:
        """Return the last lines of a job's log, without their newlines."""

    def follow_log(self, job: str, log: Log, *, last: int) -> Iterator[bytes]:
        """Yield the last lines of a job's log, then every new one, for ever."""

    def view_graph(self, job: str) -> GraphView:
        """Return a job's flow, with what went through it since it was started."""

    def list_events(self, job: str, *, after: int, limit: int) -> Events:
        """Return what happened to a job: the newest events, oldest of them first."""

    def list_exceptions(self, job: str) -> Exceptions:
        """Return the failures and the attempts of a job, newest first."""

    @property
    def state(self) -> State:
        """Where a job's state is asked for; nothing is begun before the first question."""

    def list_state(self, job: str, *, at: str | None = None) -> StateOverview:
        """Return the operators that hold state."""

    def list_dead_letters(self, job: str, *, reason: str | None, limit: int) -> DeadLetters:
        """Return how many dead letters a job has, and the newest of them."""

    def get_dead_letter(self, job: str, letter: str) -> DeadLetter:
        """Return one dead letter, whole."""

    def replay_dead_letters(
        self,
        job: str,
        *,
        ids: Sequence[str],
        reason: str | None,
        by: str,
        again: bool,
        without_key: bool,
        into_tables: bool,
        dry_run: bool,
        progress: Callable[[ReplayProgress], None],
    ) -> Replayed:
        """Send the records of dead letters again; a server knows by itself who asks."""
