"""`Home`: the interface to the jobs of one place, a folder on this machine or a server.

A method on one job takes the job's name first. Methods that read are nouns, and methods that change
a job are verbs: `home.jobs()`, `home.graph("orders")`, `home.stop("orders", drain=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol

from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.jobs.checkpoints.portable import PortableSavepoint
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.requests import Patience
from headgate.jobs.control.verbs import Loss, Savepoint, Stopped
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress, ReplayRequest
from headgate.jobs.removal.deletion import Deletion
from headgate.jobs.removal.pruning import Pruning
from headgate.jobs.startup.background import Detached
from headgate.jobs.state.values import State, StateOverview
from headgate.jobs.values import NO_CONSENT, Consent
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobDetails, JobView
from headgate.jobs.views.log_search import LogFilter, LogMatches
from headgate.jobs.views.logs import Log
from headgate.jobs.views.processes import Processes


class Home(Protocol):
    """The jobs of one place; both implementations return the same values and errors.

    `jobs.folder_home.FolderHome` is a folder on this machine, `client.server_home.ServerHome` a
    server. Every method that takes a job raises JOB_NOT_FOUND if there is no such job.
    """

    @property
    def where(self) -> str:
        """The folder or the URL."""

    @property
    def state(self) -> State:
        """The state of the jobs; the first question starts the reader of state."""

    def names(self) -> list[str]: ...

    def jobs(self) -> list[JobView]:
        """Return the summaries of all jobs, by name; a job that cannot be read is UNREADABLE."""

    def job(self, job: str, /) -> JobView:
        """Return the summary of a job, with the last report of its supervisor."""

    def details(self, job: str, /) -> JobDetails: ...

    def graph(self, job: str, /) -> GraphView:
        """Return a job's flow as it was last run, with its row counts since the last start."""

    def events(self, job: str, /, *, after: int | None = None, limit: int = 200) -> Events:
        """Return the newest events of a job, or the first ones after a number, oldest first.

        Args:
            after: The number of the last event seen, to page forward; None for the newest events.
            limit: The maximum number of events.
        """

    def exceptions(self, job: str, /) -> Exceptions:
        """Return the failures and the attempts of a job, newest first."""

    def operators(self, job: str, /, *, at: str | None = None) -> StateOverview:
        """Return the operators of a job that hold state, and its size.

        Args:
            at: None for the last committed batch; `chk-17`, a savepoint's name, or `latest`.
        """

    def processes(self, job: str, /) -> Processes:
        """Return the driver and the executors of a job, with their tasks and their memory."""

    def tail_log(
        self, job: str, log: Log, /, *, last: int, executor: str | None = None
    ) -> list[bytes]:
        """Return the last lines of a job's log, without their newlines.

        Args:
            executor: The id of the executor, for the log of one.
        """

    def follow_log(
        self, job: str, log: Log, /, *, last: int, executor: str | None = None
    ) -> Iterator[bytes]:
        """Yield the last lines of a job's log, then every new one, without end."""

    def search_log(
        self, job: str, log: Log, wanted: LogFilter, /, *, last: int, executor: str | None = None
    ) -> LogMatches:
        """Return the last matching lines of a whole log, and the number of all."""

    def start(self, job: str, /, *, consent: Consent = NO_CONSENT) -> Detached:
        """Start a job again as it was last run, in the background."""

    def stop(
        self,
        job: str,
        /,
        *,
        savepoint: str | None = None,
        drain: bool = False,
        patience: Patience | None = None,
    ) -> Stopped:
        """Stop a job between two batches, and wait until its process has ended.

        Args:
            savepoint: The folder of a savepoint to take at the end; None for no savepoint, empty
                for a folder in the job's own, which is the only place that a server allows.
            drain: Read all present records first.
        """

    def cancel(self, job: str, /, *, patience: Patience | None = None) -> JobView:
        """End a job at once, and wait until its process has ended."""

    def preview_cancel(self, job: str, /) -> Loss:
        """Return what a cancel of a job would delete, without doing it."""

    def restart(
        self, job: str, /, *, patience: Patience | None = None, consent: Consent = NO_CONSENT
    ) -> Detached:
        """Stop a job between two batches, if it is running, and start it again."""

    def delete(self, job: str, /, *, keep_savepoints: bool = False) -> Deletion:
        """Delete a job that is not running: its runs, checkpoints, savepoints and logs.

        Args:
            keep_savepoints: Leave the savepoints in the job's folder.
        """

    def preview_delete(self, job: str, /, *, keep_savepoints: bool = False) -> Deletion:
        """Return what deleting a job would remove and leave, without doing it."""

    def prune(
        self, job: str, /, *, drop_checkpoints: bool = False, dry_run: bool = False
    ) -> Pruning:
        """Remove the files of a job's old runs that nothing needs; the job may be running.

        Args:
            drop_checkpoints: Also remove unpinned checkpoints of runs that the present run does not
                descend from.
            dry_run: Remove nothing.
        """

    def pause(self, job: str, /, *, patience: Patience | None = None) -> JobView:
        """Make a job stop reading, and wait until it has."""

    def resume(self, job: str, /, *, patience: Patience | None = None) -> JobView:
        """Let a paused job read on, and wait until it does."""

    def take_savepoint(
        self, job: str, /, *, to: str | Path | None = None, patience: Patience | None = None
    ) -> Savepoint:
        """Take a savepoint of a job's last batch, whether the job is running or not.

        Args:
            to: The savepoint's folder, which must not exist; by default one in the job's own,
                which is the only place that a server allows.
        """

    def take_portable_savepoint(
        self, job: str, /, *, to: str | Path | None = None, patience: Patience | None = None
    ) -> PortableSavepoint:
        """Write the state of a job's last batch as Parquet, by operator."""

    def checkpoints(self, job: str, /, *, every_run: bool = False) -> list[AnyCheckpoint]:
        """Return the checkpoints of a job's present run and its savepoints, oldest first.

        Args:
            every_run: Include the checkpoints of earlier runs.
        """

    def checkpoint(self, job: str, checkpoint: str, /) -> AnyCheckpoint:
        """Return one checkpoint, with the problems of its files.

        Args:
            checkpoint: `chk-17`, `17`, `LINEAGE/chk-17` of an earlier run, a savepoint's name, or
                `latest`.
        """

    def pin(self, job: str, checkpoint: str, /, *, pinned: bool) -> AnyCheckpoint:
        """Exempt a checkpoint from retention, or subject it to retention again."""

    def preview_restore(
        self, job: str, /, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        """Return what a restore from a checkpoint would do, without doing it.

        Args:
            source: A checkpoint as `checkpoint` takes it, or a folder; None for the newest one.
            at: The moment of the checkpoint instead: `2026-11-15 10:05` or `10m ago`.
            drop: Uids of operators that start without their state.
        """

    def restore(
        self, job: str, /, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> tuple[RestorePlan, Detached]:
        """Go back to a checkpoint, and run on from there in the background.

        The arguments are those of `preview_restore`.
        """

    def dead_letters(
        self, job: str, /, *, reason: str | None = None, limit: int = 100
    ) -> DeadLetters:
        """Return the number of a job's dead letters, by topic and reason, and the newest ones.

        Args:
            reason: List only letters with this reason, such as BAD_JSON; all are counted.
            limit: The maximum number of listed letters.
        """

    def dead_letter(self, job: str, letter: str, /) -> DeadLetter:
        """Return one dead letter with its whole record."""

    def replay_dead_letters(
        self,
        job: str,
        request: ReplayRequest,
        /,
        *,
        by: str,
        progress: Callable[[ReplayProgress], None] | None = None,
    ) -> Replayed:
        """Send the records of dead letters again, to the topics they came from.

        Args:
            by: The user, for the job's records; a server takes it from the token.
            progress: Called after each batch; a server does not report progress.
        """
