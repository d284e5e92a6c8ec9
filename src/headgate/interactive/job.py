"""A handle on one job: the methods of a `Home`, with the job's name filled in."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from headgate._units import parse_duration
from headgate.checkpoints.checkpoint import AnyCheckpoint
from headgate.client.home import Home
from headgate.errors import HeadgateError
from headgate.interactive import html
from headgate.interactive.tables import Rows
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control.requests import Patience
from headgate.jobs.control.verbs import Savepoint
from headgate.jobs.dead_letters.listing import DeadLetters
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.state.values import HistoryEntry
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobView
from headgate.jobs.views.logs import Log

_LOOK_EVERY_S = 0.25
_TIMEOUT = "10m"


class Job:
    """One job of a folder on this machine, or of a server.

    Verbs wait for their effect, at most `timeout`; the request stays valid afterwards.

    Attributes:
        home: All that can be asked of the jobs of that place, by name.
        name: The job's name.
    """

    def __init__(self, home: Home, name: str) -> None:
        self.home = home
        self.name = name

    @property
    def status(self) -> JobView:
        """The job's state, rates, lag and newest checkpoint, as of now."""
        return self.home.job(self.name)

    def wait(self, timeout: str | timedelta | None = None) -> JobView:
        """Wait until the job has ended, and return how; Ctrl-C ends only the wait.

        Raises:
            HeadgateError: The error of a job that FAILED; JOB_ENDED if its process was killed;
                WAITED_TOO_LONG.
        """
        patience = None if timeout is None else _patience(timeout)
        began = time.monotonic()
        while (view := self.status).is_alive:
            if patience is not None and time.monotonic() - began >= _seconds(patience.longest):
                raise patience.gave_up(view, "end")
            time.sleep(_LOOK_EVERY_S)
        if view.state == JobState.FAILED:
            raise view.failure()
        if not view.is_final:
            raise view.dead()
        return view

    def stop(
        self,
        *,
        savepoint: bool | str | Path = False,
        drain: bool = False,
        timeout: str | timedelta = _TIMEOUT,
    ) -> Savepoint | None:
        """Stop the job between two batches, and return its savepoint, if one was taken.

        Args:
            savepoint: Whether to take one at the end, or the folder for it.
            drain: Read all present records first, and close every window.
        """
        where = None if savepoint is False else "" if savepoint is True else str(savepoint)
        return self.home.stop(
            self.name, savepoint=where, drain=drain, patience=_patience(timeout)
        ).savepoint

    def cancel(self, *, timeout: str | timedelta = _TIMEOUT) -> None:
        """End the job at once; the next start repeats its open batch."""
        self.home.cancel(self.name, patience=_patience(timeout))

    def pause(self, *, timeout: str | timedelta = _TIMEOUT) -> None:
        """Make the job stop reading."""
        self.home.pause(self.name, patience=_patience(timeout))

    def resume(self, *, timeout: str | timedelta = _TIMEOUT) -> None:
        """Let the paused job read on."""
        self.home.resume(self.name, patience=_patience(timeout))

    def start(self) -> None:
        """Start the job again as it was last run, in the background."""
        self.home.start(self.name)

    def restart(self, *, timeout: str | timedelta = _TIMEOUT) -> None:
        """Stop the job between two batches, if it is running, and start it in the background."""
        self.home.restart(self.name, patience=_patience(timeout))

    def restore(
        self, source: str | None = None, *, at: str | None = None, drop_state: Collection[str] = ()
    ) -> RestorePlan:
        """Go back to a checkpoint of a job that is not running, and run on in the background.

        Args:
            source: `chk-17`, a savepoint's name or folder; by default the newest checkpoint.
            at: The moment of the checkpoint instead: `2026-11-15 10:05` or `10m ago`.
            drop_state: Uids of operators that start without their state.

        Returns:
            What the restore does, as `preview_restore` shows it before.
        """
        plan, _ = self.home.restore(self.name, source=source, at=at, drop=drop_state)
        return plan

    def preview_restore(
        self, source: str | None = None, *, at: str | None = None, drop_state: Collection[str] = ()
    ) -> RestorePlan:
        """Return what a restore would do, without doing it."""
        return self.home.preview_restore(self.name, source=source, at=at, drop=drop_state)

    def take_savepoint(
        self, to: str | Path | None = None, *, timeout: str | timedelta = _TIMEOUT
    ) -> Savepoint:
        """Take a savepoint of the last batch, whether the job is running or not."""
        return self.home.take_savepoint(self.name, to=to, patience=_patience(timeout))

    def checkpoints(self, *, every_run: bool = False) -> Rows[AnyCheckpoint]:
        """Return the checkpoints of the present run and the savepoints, oldest first.

        Args:
            every_run: Include the checkpoints of earlier runs.
        """
        return _listed(self.home.checkpoints(self.name, every_run=every_run))

    def savepoints(self) -> Rows[AnyCheckpoint]:
        """Return the savepoints, oldest first."""
        listed = self.home.checkpoints(self.name)
        return _listed(checkpoint for checkpoint in listed if checkpoint.kind == "savepoint")

    def state(self, uid: str) -> OperatorState:
        """Return the state of an operator, by its uid."""
        return OperatorState(self, uid)

    def graph(self) -> GraphView:
        """Return the flow as it was last run, with its row counts since the last start."""
        return self.home.graph(self.name)

    def dead_letters(self, *, reason: str | None = None, limit: int = 100) -> DeadLetters:
        """Return the number of dead letters, by topic and reason, and the newest ones."""
        return self.home.dead_letters(self.name, reason=reason, limit=limit)

    def logs(self, log: str = "spark", *, last: int = 50) -> str:
        """Return the last lines of a log: `spark`, `driver`, `supervisor` or `events`."""
        lines = self.home.tail_log(self.name, _log(log), last=last)
        return "\n".join(line.decode("utf-8", "backslashreplace") for line in lines)

    def __repr__(self) -> str:
        return f"<Job {self.name!r} in {self.home.where}: {self.status.state}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the state, and the graph with the rows on each edge."""
        return html.show_job(self.status, self.graph())


class OperatorState:
    """The state of one operator of a job; the first question takes some seconds.

    `at` is None for the last committed batch, or `chk-17`, a savepoint's name, or `latest`.
    """

    def __init__(self, job: Job, uid: str) -> None:
        self._job = job.name
        self._state = job.home.state
        self._uid = uid

    def get(self, key: Any, *, at: str | None = None) -> Any:
        """Return the value of a key as JSON values, or None if it has none.

        Args:
            key: Such as `42` or `"abc"`; of several columns a tuple or a dict of them.
        """
        return self._state.look_up(self._job, self._uid, html.key_text(key), at=at).value

    def history(self, key: Any) -> Rows[HistoryEntry]:
        """Return the values of a key at every retained checkpoint, and now, oldest first."""
        entries = self._state.history(self._job, self._uid, html.key_text(key)).entries
        return Rows(entries, ("checkpoint", "time", "change", "value"), html.history_cells)

    def rows(self, *, limit: int = 50, at: str | None = None) -> Rows[dict[str, Any]]:
        """Return some rows; Spark chooses which."""
        rows = self._state.first_rows(self._job, self._uid, at=at, limit=limit)
        return html.list_rows(rows.columns, rows.rows)

    def query(self, sql: str, *, limit: int = 1000, at: str | None = None) -> Rows[dict[str, Any]]:
        """Return the first rows of a query, in which `state` is this operator's state."""
        rows = self._state.query(self._job, sql, uid=self._uid, at=at, limit=limit)
        return html.list_rows(rows.columns, rows.rows)

    def __repr__(self) -> str:
        return f"<state of operator {self._uid!r} of job {self._job!r}>"


def _listed(checkpoints: Iterable[AnyCheckpoint]) -> Rows[AnyCheckpoint]:
    return Rows(checkpoints, html.CHECKPOINT_COLUMNS, html.checkpoint_cells)


def _patience(timeout: str | timedelta) -> Patience:
    return Patience(timeout if isinstance(timeout, timedelta) else parse_duration(timeout))


def _seconds(duration: timedelta) -> float:
    return duration.total_seconds()


def _log(name: str) -> Log:
    try:
        return Log(name)
    except ValueError:
        raise HeadgateError(
            "LOG_NOT_FOUND",
            f"cannot read log {name!r}: the logs of a job are {', '.join(Log)}",
            hint="job.logs('spark')",
        ) from None
