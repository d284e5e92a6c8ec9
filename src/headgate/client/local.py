"""The jobs of a home on this machine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.client.jobs import State
from headgate.jobs import service
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
    StateOverview,
    Stopped,
)


@dataclass(frozen=True, slots=True)
class LocalJobs:
    """The jobs of a home; answers without a server."""

    home: Path

    @property
    def where(self) -> str:
        """The home's folder."""
        return str(self.home)

    def list_jobs(self) -> list[JobView]:
        """Return every job, by name."""
        return service.list_jobs(self.home)

    def list_names(self) -> list[str]:
        """Return the names of all jobs."""
        return service.list_names(self.home)

    def look_at(self, job: str) -> JobView:
        """Return one job in short, with all that its supervisor last told."""
        return service.look_at(self.home, job)

    def show_job(self, job: str) -> JobDetails:
        """Return all of one job."""
        return service.show_job(self.home, job)

    def start_job(self, job: str, *, consent: Consent = NO_CONSENT) -> Detached:
        """Start a job again as it was last run, in the background."""
        return service.start_job(self.home, job, consent=consent)

    def stop_job(
        self, job: str, *, savepoint: str | None, drain: bool, patience: Patience
    ) -> Stopped:
        """Stop a job between two batches, and wait until it has let go."""
        return service.stop_job(self.home, job, savepoint=savepoint, drain=drain, patience=patience)

    def cancel_job(self, job: str, *, patience: Patience) -> JobView:
        """End a job at once, and wait until it has let go."""
        return service.cancel_job(self.home, job, patience=patience)

    def foresee_cancel(self, job: str) -> Loss:
        """Return what a cancel of a job would take along; nothing is done."""
        return service.foresee_cancel(self.home, job)

    def restart_job(
        self, job: str, *, patience: Patience, consent: Consent = NO_CONSENT
    ) -> Detached:
        """Stop a job between two batches and start it again."""
        return service.restart_job(self.home, job, patience=patience, consent=consent)

    def pause_job(self, job: str, *, patience: Patience) -> JobView:
        """Make a job read nothing, and wait until it does."""
        return service.pause_job(self.home, job, patience=patience)

    def resume_job(self, job: str, *, patience: Patience) -> JobView:
        """Let a paused job go on, and wait until it does."""
        return service.resume_job(self.home, job, patience=patience)

    def take_savepoint(self, job: str, *, to: Path | None, patience: Patience) -> Savepoint:
        """Take a savepoint of a job's last batch."""
        return service.take_savepoint(self.home, job, to=to, patience=patience)

    def take_portable_savepoint(
        self,
        job: str,
        *,
        to: Path | None,
        patience: Patience,  # noqa: ARG002 - a server's may take long; here nobody is asked
    ) -> PortableSavepoint:
        """Write the state of a job's last batch as Parquet, by operator."""
        return service.take_portable_savepoint(self.home, job, to=to)

    def list_checkpoints(self, job: str, *, every_run: bool = False) -> list[AnyCheckpoint]:
        """Return the checkpoints and savepoints of a job, oldest first."""
        return service.list_checkpoints(self.home, job, every_run=every_run)

    def get_checkpoint(self, job: str, checkpoint: str) -> AnyCheckpoint:
        """Return one checkpoint, with what is wrong with its files."""
        return service.get_checkpoint(self.home, job, checkpoint)

    def pin_checkpoint(self, job: str, checkpoint: str, *, pinned: bool) -> AnyCheckpoint:
        """Make a checkpoint stay whatever is retained, or let it go when its time comes."""
        return service.pin_checkpoint(self.home, job, checkpoint, pinned=pinned)

    def preview_restore(
        self, job: str, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        """Return what going back to a checkpoint would do; nothing is done."""
        return service.prepare_restore(self.home, job, source=source, at=at, drop=drop).plan

    def tail_log(self, job: str, log: Log, *, last: int) -> list[bytes]:
        """Return the last lines of a job's log, without their newlines."""
        return service.tail_log(service.get_log(self.home, job, log), last=last)

    def follow_log(self, job: str, log: Log, *, last: int) -> Iterator[bytes]:
        """Yield the last lines of a job's log, then every new one, for ever."""
        return service.follow_log(service.get_log(self.home, job, log), last=last)

    def view_graph(self, job: str) -> GraphView:
        """Return a job's flow, with what went through it since it was started."""
        return service.view_graph(self.home, job)

    def list_events(self, job: str, *, after: int, limit: int) -> Events:
        """Return what happened to a job: the newest events, oldest of them first."""
        return service.list_events(self.home, job, after=after, limit=limit)

    def list_exceptions(self, job: str) -> Exceptions:
        """Return the failures and the attempts of a job, newest first."""
        return service.list_exceptions(self.home, job)

    @property
    def state(self) -> State:
        """The desk of the home's reader, which the first question starts."""
        return service.open_state_desk(self.home)

    def list_state(self, job: str, *, at: str | None = None) -> StateOverview:
        """Return the operators that hold state."""
        return service.list_state(self.home, job, at=at)

    def list_dead_letters(self, job: str, *, reason: str | None, limit: int) -> DeadLetters:
        """Return how many dead letters a job has, and the newest of them."""
        return service.list_dead_letters(self.home, job, reason=reason, limit=limit)

    def get_dead_letter(self, job: str, letter: str) -> DeadLetter:
        """Return one dead letter, whole."""
        return service.get_dead_letter(self.home, job, letter)

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
        """Send the records of dead letters again."""
        return service.replay_dead_letters(
            self.home,
            job,
            ids=ids,
            reason=reason,
            by=by,
            again=again,
            without_key=without_key,
            into_tables=into_tables,
            dry_run=dry_run,
            progress=progress,
        )
