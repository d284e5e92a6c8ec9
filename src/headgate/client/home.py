"""`Home`: what can be asked of the jobs of one place, a folder on this machine or a server.

A method that is about one job takes the job's name first. Questions are nouns and what changes a
job is a verb: `home.jobs()`, `home.graph("orders")`, `home.stop("orders", drain=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.jobs.checkpoints.portable import PortableSavepoint
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.requests import Patience
from headgate.jobs.control.verbs import Loss, Savepoint, Stopped
from headgate.jobs.dead_letters.letter import DeadLetter
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.dead_letters.replay import Replayed, ReplayProgress
from headgate.jobs.startup.background import Detached
from headgate.jobs.state.values import StateHistory, StateOverview, StateRows, StateValue
from headgate.jobs.values import NO_CONSENT, Consent
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobDetails, JobView
from headgate.jobs.views.logs import Log


class State(Protocol):
    """The state of the jobs of one place; the first question may take some seconds."""

    def look_up(self, job: str, uid: str, key: str, *, at: str | None = None) -> StateValue:
        """Return what an operator holds under a key.

        Args:
            key: As somebody types it: `42`, `abc`, `"abc"`, or of several columns
                `{"a": 1, "b": 2}` or `[1, 2]`.
            at: None for the last committed batch; `chk-17`, a savepoint's name, or `latest`.
        """

    def history(self, job: str, uid: str, key: str) -> StateHistory:
        """Return what an operator held under a key at every retained checkpoint, and now."""

    def first_rows(
        self, job: str, uid: str, *, at: str | None = None, limit: int = 50
    ) -> StateRows:
        """Return the first rows that an operator holds; Spark chooses which."""

    def query(
        self,
        job: str,
        sql: str,
        *,
        uid: str | None = None,
        at: str | None = None,
        limit: int = 1000,
    ) -> StateRows:
        """Return the first rows of a query over state.

        Args:
            sql: One query. Its views are `state`, of the operator that is named or the only one,
                and one for each operator by its uid, with underscores for dashes.
        """


class Home(Protocol):
    """The jobs of one place; its two kinds give the same values and raise the same errors.

    `jobs.folder_home.FolderHome` is a folder on this machine, `client.server_home.ServerHome` a
    server. Every method that takes a job raises JOB_NOT_FOUND if there is none of that name.
    """

    @property
    def where(self) -> str:
        """The place, as a person names it: a folder or a URL."""

    @property
    def state(self) -> State:
        """Answers questions on the state of jobs; nothing is started before the first one."""

    def names(self) -> list[str]:
        """Return the names of all jobs."""

    def jobs(self) -> list[JobView]:
        """Return every job in short, by name; one that cannot be read says so."""

    def job(self, job: str, /) -> JobView:
        """Return one job in short, with all that its supervisor last reported."""

    def details(self, job: str, /) -> JobDetails:
        """Return all of one job."""

    def graph(self, job: str, /) -> GraphView:
        """Return a job's flow as it was last run, with what went through it since its start."""

    def events(self, job: str, /, *, after: int = 0, limit: int = 200) -> Events:
        """Return what happened to a job: the newest events, oldest of them first.

        Args:
            after: Only events with a greater number; a follower gives the last one seen.
            limit: How many at most; the newest stay.
        """

    def exceptions(self, job: str, /) -> Exceptions:
        """Return why attempts of a job failed, and which attempts there were; newest first."""

    def operators(self, job: str, /, *, at: str | None = None) -> StateOverview:
        """Return the operators of a job that hold state, and how much.

        Args:
            at: None for the last committed batch; `chk-17`, a savepoint's name, or `latest`.
        """

    def tail_log(self, job: str, log: Log, /, *, last: int) -> list[bytes]:
        """Return the last lines of a job's log, without their newlines."""

    def follow_log(self, job: str, log: Log, /, *, last: int) -> Iterator[bytes]:
        """Yield the last lines of a job's log, then every new one, for ever."""

    def start(self, job: str, /, *, consent: Consent = NO_CONSENT) -> Detached:
        """Start a job again as it was last run, in the background.

        Args:
            consent: What the user agrees to this time.
        """

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
            savepoint: The folder of a savepoint to take at the end; empty for one in the job's
                own, which is the only place that a server allows; None for no savepoint.
            drain: Read what is there first.
        """

    def cancel(self, job: str, /, *, patience: Patience | None = None) -> JobView:
        """End a job at once, and wait until its process has ended."""

    def preview_cancel(self, job: str, /) -> Loss:
        """Return what a cancel of a job would delete; nothing is done."""

    def restart(
        self, job: str, /, *, patience: Patience | None = None, consent: Consent = NO_CONSENT
    ) -> Detached:
        """Stop a job between two batches and start it again; one at rest is started."""

    def pause(self, job: str, /, *, patience: Patience | None = None) -> JobView:
        """Make a job stop reading, and wait until it has."""

    def resume(self, job: str, /, *, patience: Patience | None = None) -> JobView:
        """Let a paused job read on, and wait until it does."""

    def take_savepoint(
        self, job: str, /, *, to: Path | None = None, patience: Patience | None = None
    ) -> Savepoint:
        """Take a savepoint of a job's last batch, whether the job is running or not.

        Args:
            to: The savepoint's folder, which must not exist; by default one in the job's own,
                which is the only place that a server allows.
        """

    def take_portable_savepoint(
        self, job: str, /, *, to: Path | None = None, patience: Patience | None = None
    ) -> PortableSavepoint:
        """Write the state of a job's last batch as Parquet, by operator."""

    def checkpoints(self, job: str, /, *, every_run: bool = False) -> list[AnyCheckpoint]:
        """Return the checkpoints of a job's present run and its savepoints, oldest first.

        Args:
            every_run: Those of earlier runs, too.
        """

    def checkpoint(self, job: str, checkpoint: str, /) -> AnyCheckpoint:
        """Return one checkpoint, with what is wrong with its files.

        Args:
            checkpoint: `chk-17`, `17`, a savepoint's name, or `latest`.
        """

    def pin(self, job: str, checkpoint: str, /, *, pinned: bool) -> AnyCheckpoint:
        """Exempt a checkpoint from retention, or subject it to retention again."""

    def preview_restore(
        self, job: str, /, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        """Return what a restore from a checkpoint would do; nothing is done.

        Args:
            source: A checkpoint as `checkpoint` takes it, or a folder; None for the newest one.
            at: A moment instead: `2026-11-15 10:05` or `10m ago`.
            drop: Uids whose state is left behind.
        """

    def dead_letters(
        self, job: str, /, *, reason: str | None = None, limit: int = 100
    ) -> DeadLetters:
        """Return how many dead letters a job has, by topic and reason, and the newest of them.

        Args:
            reason: Show letters of this reason alone, such as BAD_JSON; all are counted.
            limit: How many letters to show.
        """

    def dead_letter(self, job: str, letter: str, /) -> DeadLetter:
        """Return one dead letter, whole."""

    def replay_dead_letters(
        self,
        job: str,
        /,
        *,
        ids: Sequence[str] = (),
        reason: str | None = None,
        by: str,
        again: bool = False,
        without_key: bool = False,
        into_tables: bool = False,
        dry_run: bool = False,
        progress: Callable[[ReplayProgress], None] | None = None,
    ) -> Replayed:
        """Send the records of dead letters again, to the topics they came from.

        Args:
            ids: These letters; all where left out.
            reason: Of this reason alone, such as BAD_JSON.
            by: Who does it, for the job's records; a server knows that from the token.
            again: Send those too that were sent before, or may have been.
            without_key: Where a record is not kept any more, send its value without a key.
            into_tables: Send those of tables without a version column too, where an old row
                replaces a newer one of its key.
            dry_run: Count what would be sent, and send nothing.
            progress: Called after each batch; not by a server, which reports no numbers.
        """
