"""Jobs as those see them who look from outside: read from their folders, running or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headgate._clock import Clock, SystemClock
from headgate._codec import Moment, Seconds, WholeSeconds, alias, decode, encode, left_out
from headgate.checkpoints.catalog import read_kept
from headgate.checkpoints.checkpoint import AnyCheckpoint, parse_checkpoint
from headgate.errors import HeadgateError
from headgate.jobs.checkpoints.listing import list_checkpoints
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.registry import list_job_names

# What a job is that says it lives while nobody holds it: its supervisor was killed.
DEAD = "DEAD"
# What a job is whose folder cannot be read.
UNREADABLE = "UNREADABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job, in short.

    Attributes:
        state: A JobState, DEAD or UNREADABLE.
        is_alive: Whether a process holds the job.
        uptime: Since it was started; None unless it is alive.
        lag_bytes: What is left to read of all sources that count bytes, as of the last batch;
            None where there is none, or before.
        lag_records: Likewise of sources that count records.
        lag: How old the oldest record is that is left to read; None if unknown.
        checkpoint: The newest kept checkpoint.
        reason: Why the last attempt ended, or the job.
        todo: What to do about it, where something is to be done.
        status: All that the job's supervisor last told.
    """

    name: str = field(metadata=alias("job"))
    state: str
    is_alive: bool = field(metadata=alias("alive"))
    attempt: int = 0
    since: Moment | None = None
    uptime: WholeSeconds | None = field(default=None, metadata=alias("uptime_s"))
    records_per_s: int = 0
    lag_bytes: int | None = None
    lag_records: int | None = None
    lag: Seconds | None = field(default=None, metadata=alias("lag_s"))
    checkpoint: str | None = None
    checkpoint_at: Moment | None = None
    reason: str = ""
    todo: str = ""
    status: Mapping[str, Any] = field(default_factory=dict, metadata=left_out())

    @property
    def is_final(self) -> bool:
        """Whether the job does nothing more until somebody starts it again."""
        return _is_final(self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetails:
    """One job, all of it.

    Attributes:
        flow: The flow's file it was last run from; None if no attempt ever ran.
        settings: Each setting with its value and where it came from, by its name in
            headgate.toml.
    """

    view: JobView
    folder: Path
    flow: str | None
    settings: Mapping[str, Mapping[str, Any]]
    checkpoints: tuple[AnyCheckpoint, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the job as JSON values."""
        status = {key: value for key, value in self.view.status.items() if key != "format"}
        return {
            **status,
            **encode(self.view),
            "lag_bytes": status.get("lag_bytes", {}),
            "lag_records": status.get("lag_records", {}),
            "lag_s": status.get("lag_s", {}),
            "folder": str(self.folder),
            "flow": self.flow,
            "settings": dict(self.settings),
            "checkpoints": encode(self.checkpoints),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> JobDetails:
        """Return the job that `to_json` told of."""
        own = ("flow", "settings", "checkpoints")
        status = {key: value for key, value in told.items() if key not in own}
        return cls(
            view=replace(decode(JobView, _in_short(told)), status=status),
            folder=Path(told["folder"]),
            flow=told["flow"],
            settings=dict(told["settings"]),
            checkpoints=tuple(parse_checkpoint(each) for each in told["checkpoints"]),
        )


def list_jobs(root: Path, *, clock: Clock | None = None) -> list[JobView]:
    """Return every job of a home, by name; one that cannot be read says so."""
    found = []
    for name in list_job_names(root):
        try:
            found.append(view_job(JobFolder(root, name), clock=clock))
        except HeadgateError as error:
            alive = has_supervisor(JobFolder(root, name))
            found.append(
                JobView(
                    name=name,
                    state=UNREADABLE,
                    is_alive=alive,
                    reason=error.message,
                    todo=error.hint,
                )
            )
    return found


def show_job(home: JobFolder, *, clock: Clock | None = None) -> JobDetails:
    """Return all of one job."""
    stored = home.find_json("job.json") or {}
    options = stored.get("options") or {}
    return JobDetails(
        view=view_job(home, clock=clock),
        folder=home.path,
        flow=stored.get("flow"),
        settings=options.get("settings") or {},
        checkpoints=tuple(list_checkpoints(home)),
    )


def view_job(home: JobFolder, *, clock: Clock | None = None) -> JobView:
    """Return one job, in short."""
    # Before the status: what was let go of after a look had written its last word by then.
    alive = has_supervisor(home)
    status = home.find_json("status.json") or {}
    said = str(status.get("state") or JobState.STARTING)
    gone = not alive and not _is_final(said)
    started = _moment(status.get("started_at"))
    checkpoint = status.get("checkpoint")
    ages = status.get("lag_s") or {}
    return JobView(
        name=home.name,
        state=DEAD if gone else said,
        is_alive=alive,
        attempt=int(status.get("attempt") or 0),
        since=_moment(status.get("at" if gone else "since")),
        uptime=(clock or SystemClock()).now() - started if alive and started else None,
        records_per_s=int(status.get("records_per_s") or 0) if alive else 0,
        lag_bytes=_all(status.get("lag_bytes")),
        lag_records=_all(status.get("lag_records")),
        lag=timedelta(seconds=max(ages.values())) if ages else None,
        checkpoint=checkpoint,
        checkpoint_at=_completed(home, status.get("lineage"), checkpoint),
        reason=_died(said, status) if gone else str(status.get("reason") or ""),
        todo=_todo(home.name, DEAD if gone else said),
        status=status,
    )


def _all(counts: Mapping[str, int] | None) -> int | None:
    return sum(counts.values()) if counts else None


def _in_short(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a job in short: its lags are over all sources, not by source."""
    ages = details["lag_s"] or {}
    return {
        **details,
        "lag_bytes": _all(details["lag_bytes"]),
        "lag_records": _all(details["lag_records"]),
        "lag_s": max(ages.values(), default=None),
    }


def _is_final(state: str) -> bool:
    return any(state == each and each.is_final for each in JobState)


def _died(said: str, status: Mapping[str, Any]) -> str:
    at = _moment(status.get("at"))
    last = f", last heard of at {at:%Y-%m-%d %H:%M:%S} UTC" if at else ""
    return f"the process that supervised it is gone: it was {said}{last}"


def _todo(name: str, state: str) -> str:
    match state:
        case "DEAD" | "FAILED":
            return f"headgate start {name}"
        case "PAUSED":
            return f"headgate resume {name}"
    return ""


def _completed(home: JobFolder, lineage: Any, checkpoint: Any) -> datetime | None:
    if not lineage or not checkpoint:
        return None
    try:
        return read_kept(home.checkpoints_folder(str(lineage)) / str(checkpoint)).completed_at
    except HeadgateError:
        return None


def _moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def last_checkpoint_took(home: JobFolder, view: JobView) -> timedelta | None:
    """Return how long the batch of a job's newest checkpoint took; None where there is none."""
    lineage = view.status.get("lineage")
    if not lineage or not view.checkpoint:
        return None
    folder = home.checkpoints_folder(str(lineage)) / view.checkpoint
    try:
        return read_kept(folder).duration
    except HeadgateError:
        return None
