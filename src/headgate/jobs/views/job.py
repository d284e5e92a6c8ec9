"""Read-only views of jobs: read from their folders, whether they are running or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from headgate._clock import Clock, SystemClock
from headgate._codec import (
    DecodeError,
    Form,
    Moment,
    Seconds,
    WholeSeconds,
    alias,
    decode,
    encode,
    left_out,
    left_out_while,
    shaped,
)
from headgate._locations import is_local
from headgate.checkpoints.catalog import read_kept
from headgate.checkpoints.checkpoint import AnyCheckpoint, Checkpoint
from headgate.errors import Domain, HeadgateError, StoreError
from headgate.jobs.checkpoints.listing import list_checkpoints
from headgate.jobs.flow_file import find_flow
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.lifecycle.restart import HEALTHY
from headgate.jobs.lifecycle.states import JobState, present_name
from headgate.jobs.registry import list_job_names
from headgate.jobs.totals import without_rates

# The state of a job whose supervisor was killed: its status is not final, and no process holds it.
DEAD = "DEAD"
# The state of a job whose folder cannot be read.
UNREADABLE = "UNREADABLE"

# The states that need attention most come first; final states that were asked for come last.
_ATTENTION: tuple[tuple[str, ...], ...] = (
    (JobState.FAILED, DEAD, UNREADABLE),
    (JobState.RESTARTING,),
    (JobState.PAUSED,),
    (JobState.STARTING, JobState.STOPPING, JobState.CANCELING, JobState.RESCALING),
    (JobState.RUNNING,),
)
# The number of failures in a row after which a job in a state is failing. A job that runs again
# after one failure may have recovered.
_FAILING_AFTER = {JobState.STARTING: 1, JobState.RESTARTING: 1, JobState.RUNNING: 2}

_LAGS = ("lag_bytes", "lag_records", "lag_s")
# What of the status is not in the JSON of a job.
_OF_SUPERVISOR = ("format", "newest")
# The JSON of a job in details is its status and these; a server adds `kept_up`.
_NOT_STATUS = ("flow", "settings", "checkpoints", "unlisted", "kept_up")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """The summary of a job.

    Attributes:
        state: A JobState, DEAD or UNREADABLE.
        is_alive: Whether a process holds the job.
        uptime: Since it was started, or since its last restart began to run; None if it is not
            alive, or restarts after a failure.
        failures: Failures in a row: since an attempt last ran for 10 minutes; 0 unless it is alive.
        lag_bytes: Unread bytes of all sources that count bytes, after the last batch; None if
            there is no such source or no batch yet.
        lag_records: Likewise of sources that count records.
        lag: The age of the oldest unread record; None if unknown.
        checkpoint: The newest kept checkpoint.
        reason: Why the last attempt, or the job, ended.
        todo: The command that helps; empty if none is needed.
        status: The last report of the job's supervisor.
    """

    name: str = field(metadata=alias("job"))
    state: str
    is_alive: bool = field(metadata=alias("alive"))
    attempt: int = 0
    since: Moment | None = None
    uptime: WholeSeconds | None = field(default=None, metadata=alias("uptime_s"))
    failures: int = 0
    records_per_s: int = 0
    lag_bytes: int | None = None
    lag_records: int | None = None
    lag: Seconds | None = field(default=None, metadata=alias("lag_s"))
    checkpoint: str | None = None
    checkpoint_at: Moment | None = None
    reason: str = ""
    todo: str = ""
    status: Mapping[str, Any] = field(default_factory=dict, repr=False, metadata=left_out())

    @property
    def is_final(self) -> bool:
        """Whether the job stays as it is until it is started again."""
        return _is_final(self.state)

    @property
    def is_failing(self) -> bool:
        """Whether its attempts fail one after the other."""
        return _is_failing(self.state, self.failures)

    @property
    def place(self) -> tuple[int, str]:
        """Its place in a list of jobs: those that need attention first, then by name."""
        rank = _rank(self.state)
        return min(rank, _rank(JobState.RESTARTING)) if self.is_failing else rank, self.name

    @property
    def needs_attention(self) -> bool:
        """Whether it failed, is failing, or cannot be read."""
        return self.place[0] <= _rank(JobState.RESTARTING)

    def failure(self) -> HeadgateError:
        """Return the error of a job that failed."""
        failure = self.status.get("last_failure") or {}
        domain = failure.get("domain")
        return HeadgateError(
            str(failure.get("code") or "JOB_ENDED"),
            str(failure.get("message") or self.reason),
            hint=str(failure.get("hint") or f"headgate show {self.name}"),
            domain=Domain(domain) if domain in tuple(Domain) else Domain.INTERNAL,
            root_cause=str(failure.get("root_cause") or ""),
        )

    def dead(self) -> HeadgateError:
        """Return the error of a job whose process is gone and wrote no final state."""
        return HeadgateError(
            "JOB_ENDED",
            f"cannot follow job {self.name!r}: it is {self.state} ({self.reason})",
            hint=f"headgate start {self.name}",
            domain=Domain.EXTERNAL,
        )

    __get_pydantic_core_schema__ = shaped(computed={"failing": "is_failing"})


def _write_view(view: JobView) -> dict[str, Any]:
    """Return the JSON of a job in details: all of its status, with lags by source."""
    status = {key: value for key, value in view.status.items() if key not in _OF_SUPERVISOR}
    return {**status, **encode(view), **{lag: status.get(lag, {}) for lag in _LAGS}}


def _read_view(details: Mapping[str, Any]) -> JobView:
    status = {key: value for key, value in details.items() if key not in _NOT_STATUS}
    ages = details.get("lag_s") or {}
    lags = {lag: _all(details.get(lag)) for lag in _LAGS} | {
        "lag_s": max(ages.values(), default=None)
    }
    return replace(decode(JobView, {**details, **lags}), status=status)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """A job with its settings and checkpoints.

    Attributes:
        flow: The flow's file of the last run; None if the job never ran.
        settings: The value and the origin of each setting, by its name in headgate.toml.
        unlisted: Why the checkpoints are not listed; empty if they are.
    """

    view: Annotated[JobView, Form(_write_view, _read_view)]
    folder: Path
    flow: str | None
    settings: Mapping[str, Mapping[str, Any]]
    checkpoints: tuple[AnyCheckpoint, ...] = ()
    unlisted: str = field(default="", metadata=left_out_while(""))

    __get_pydantic_core_schema__ = shaped(flatten="view")


def list_jobs(root: Path, *, clock: Clock | None = None) -> list[JobView]:
    """Return every job of a home; a job that cannot be read is UNREADABLE.

    Jobs that need attention come first: failed and dead ones, then failing ones; then by name.
    """
    views = []
    for name in list_job_names(root):
        home = JobFolder(root, name)
        try:
            view = view_job(home, clock=clock)
        except HeadgateError as error:
            view = JobView(
                name=name,
                state=UNREADABLE,
                is_alive=has_supervisor(home),
                reason=error.message,
                todo=error.hint,
            )
        views.append(view)
    return sorted(views, key=lambda view: view.place)


def show_job(home: JobFolder, *, clock: Clock | None = None, listed: bool = True) -> JobDetails:
    """Return a job with its settings and checkpoints.

    Args:
        listed: List the checkpoints. If their store does not answer, the rest is shown.
    """
    checkpoints: list[AnyCheckpoint] = []
    unlisted = ""
    try:
        checkpoints = list_checkpoints(home) if listed else []
    except StoreError as error:
        unlisted = error.message
    stored = home.find_json("job.json") or {}
    options = stored.get("options") or {}
    return JobDetails(
        view=view_job(home, clock=clock),
        folder=home.path,
        flow=find_flow(home, flow) if (flow := stored.get("flow")) else None,
        settings=options.get("settings") or {},
        checkpoints=tuple(checkpoints),
        unlisted=unlisted,
    )


def view_job(home: JobFolder, *, clock: Clock | None = None) -> JobView:
    """Return the summary of a job."""
    # Before the status: a supervisor that is gone has written its last status.
    alive = has_supervisor(home)
    stored = home.find_json("status.json") or {}
    status = stored if alive else without_rates(stored)
    last_state = present_name(str(status.get("state") or JobState.STARTING))
    gone = not alive and not _is_final(last_state)
    now = (clock or SystemClock()).now()
    failures = _count_failures(status, now) if alive else 0
    ages = status.get("lag_s") or {}
    newest = _find_newest(home, status)
    return JobView(
        name=home.name,
        state=DEAD if gone else last_state,
        is_alive=alive,
        attempt=int(status.get("attempt") or 0),
        since=_moment(status.get("at" if gone else "since")),
        uptime=_find_uptime(status, now) if alive else None,
        failures=failures,
        records_per_s=int(status.get("records_per_s") or 0),
        lag_bytes=_all(status.get("lag_bytes")),
        lag_records=_all(status.get("lag_records")),
        lag=timedelta(seconds=max(ages.values())) if ages else None,
        checkpoint=status.get("checkpoint"),
        checkpoint_at=None if newest is None else newest.completed_at,
        reason=_died(last_state, status) if gone else str(status.get("reason") or ""),
        todo=_todo(home, DEAD if gone else last_state, failures),
        status=status,
    )


def _all(counts: Mapping[str, int] | None) -> int | None:
    return sum(counts.values()) if counts else None


def _is_final(state: str) -> bool:
    return any(state == final for final in JobState if final.is_final)


def _rank(state: str) -> int:
    return next(
        (rank for rank, states in enumerate(_ATTENTION) if state in states), len(_ATTENTION)
    )


def _is_failing(state: str, failures: int) -> bool:
    return any(state == name and failures >= enough for name, enough in _FAILING_AFTER.items())


def _count_failures(status: Mapping[str, Any], now: datetime) -> int:
    """Return the failures in a row; none once the present attempt has run long enough."""
    healthy_since = _moment(status.get("healthy_since"))
    recovered = healthy_since is not None and now - healthy_since >= HEALTHY
    return 0 if recovered else int(status.get("failures") or 0)


def _find_uptime(status: Mapping[str, Any], now: datetime) -> timedelta | None:
    began = _moment(status.get("healthy_since" if status.get("failures") else "started_at"))
    return None if began is None else now - began


def _died(state: str, status: Mapping[str, Any]) -> str:
    at = _moment(status.get("at"))
    last = f", and its last report is of {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
    return f"its supervisor is gone: it was {state}{last}"


def _todo(home: JobFolder, state: str, failures: int) -> str:
    if _is_failing(state, failures):
        return f"headgate exceptions {home.name}"
    match state:
        case "DEAD" | "FAILED":
            # Up to release 0.8.1, a first start that was killed did not write how to repeat it.
            is_known = (home.path / "job.json").is_file()
            return f"headgate start {home.name}" if is_known else "headgate run FLOW"
        case "PAUSED":
            return f"headgate resume {home.name}"
    return ""


def _moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def newest_checkpoint(home: JobFolder, view: JobView) -> Checkpoint | None:
    """Return a job's newest kept checkpoint; None if it has none.

    One on an object store is described by the job's supervisor: lists of jobs must not wait for a
    store. It lacks what is known of each source and operator.
    """
    return _find_newest(home, view.status)


def _find_newest(home: JobFolder, status: Mapping[str, Any]) -> Checkpoint | None:
    lineage, checkpoint = status.get("lineage"), status.get("checkpoint")
    if not lineage or not checkpoint:
        return None
    try:
        folder = home.checkpoints_folder(lineage) / checkpoint
        if is_local(folder):
            return read_kept(folder)
        newest = status.get("newest")
        return None if newest is None else decode(Checkpoint, newest)
    except (HeadgateError, DecodeError):
        return None
