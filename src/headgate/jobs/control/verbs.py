"""The verbs on jobs: each asks a job's supervisor for something, and waits until it is so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from headgate._clock import Clock
from headgate._codec import DecodeError, alias, decode, shaped
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.errors import Domain, HeadgateError
from headgate.jobs.checkpoints.listing import list_checkpoints
from headgate.jobs.control.requests import Patience, Request, check_running, ended_otherwise
from headgate.jobs.job_folder import JobFolder, broken_file
from headgate.jobs.lifecycle.intent import has_supervisor
from headgate.jobs.lifecycle.states import JobState
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.startup.background import Detached, start_detached
from headgate.jobs.values import NO_CONSENT, Consent, RunOptions
from headgate.jobs.views.job import JobView, view_job

_FAILED = "SAVEPOINT_FAILED"
_SAVEPOINT_ENDS = ("SAVEPOINT", _FAILED)


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A savepoint that was taken."""

    name: str = field(metadata=alias("savepoint"))
    folder: Path
    batch: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """A job that was stopped, with the savepoint that was asked for."""

    view: JobView
    savepoint: Savepoint | None = None

    __get_pydantic_core_schema__ = shaped(flatten="view")


@dataclass(frozen=True, slots=True)
class Loss:
    """What a cancel would take along.

    Attributes:
        deletes_state: Whether the job's state goes, as --on-cancel asks.
        checkpoints: The ids of those that would go.
        bytes: How much they hold that no other one does.
    """

    view: JobView
    deletes_state: bool
    checkpoints: tuple[str, ...] = field(metadata=alias("deletes"))
    bytes: int
    dry_run: bool = True

    __get_pydantic_core_schema__ = shaped(flatten="view")


def stop_job(
    home: JobFolder,
    *,
    savepoint: str | None = None,
    drain: bool = False,
    patience: Patience | None = None,
) -> Stopped:
    """Stop a job between two batches, and wait until it has let go.

    Args:
        savepoint: The folder of a savepoint to take at the end; empty for one in the job's own,
            None for none.
        drain: Read what is there first.
    """
    asked = Request(home, Verb.STOP, patience or Patience())
    to = None if savepoint is None else _free_place(savepoint)
    asked.send({"drain": drain, "savepoint": to})
    refusal = asked.find_refusal()
    if refusal is not None and view_job(home).state != JobState.STOPPED:
        raise refusal
    view = asked.wait_for_end()
    if view.state != JobState.STOPPED:
        raise ended_otherwise(view, "stop")
    if savepoint is None:
        return Stopped(view)
    return Stopped(view, _get_last_savepoint(asked, home.name))


def cancel_job(home: JobFolder, *, patience: Patience | None = None) -> JobView:
    """End a job at once, and wait until it has let go."""
    asked = Request(home, Verb.CANCEL, patience or Patience())
    asked.send_or_raise({})
    view = asked.wait_for_end()
    if view.state != JobState.CANCELED:
        raise ended_otherwise(view, "cancel")
    return view


def foresee_cancel(home: JobFolder) -> Loss:
    """Return what a cancel of a job would take along; nothing is done.

    Raises:
        HeadgateError: JOB_NOT_RUNNING, as the cancel itself would.
    """
    check_running(home, verb="cancel")
    stored = (home.find_json("job.json") or {}).get("options") or {}
    deletes = bool(stored.get("delete_on_cancel"))
    kept = list_checkpoints(home) if deletes else []
    lost = [each for each in kept if each.kind == "checkpoint"]
    return Loss(
        view=view_job(home),
        deletes_state=deletes,
        checkpoints=tuple(each.id for each in lost),
        bytes=sum(each.new_bytes for each in lost if isinstance(each, Checkpoint)),
    )


def pause_job(home: JobFolder, *, patience: Patience | None = None) -> JobView:
    """Make a job read nothing, and wait until it does; one that waits to restart stays paused."""
    asked = Request(home, Verb.PAUSE, patience or Patience())
    asked.send_or_raise({})
    return asked.wait_for(
        lambda view: (
            view.state == JobState.PAUSED
            or (view.state == JobState.RESTARTING and bool(view.status.get("held")))
        )
    )


def resume_job(home: JobFolder, *, patience: Patience | None = None) -> JobView:
    """Let a paused job go on, and wait until it does; one that waits to restart will."""
    asked = Request(home, Verb.RESUME, patience or Patience())
    asked.send_or_raise({})
    return asked.wait_for(
        lambda view: (
            view.state == JobState.RUNNING
            or (view.state == JobState.RESTARTING and not view.status.get("held"))
        )
    )


def take_savepoint(
    home: JobFolder, *, to: Path | None = None, patience: Patience | None = None
) -> Savepoint:
    """Take a savepoint of a job: of its last batch, whether it is running or not.

    Args:
        to: The savepoint's folder, which must not exist; by default one in the job's own.
    """
    folder = "" if to is None else _free_place(str(to))
    if not has_supervisor(home):
        return _savepoint_at_rest(home, folder, (patience or Patience()).clock)
    asked = Request(home, Verb.SAVEPOINT, patience or Patience())
    asked.send_or_raise({"to": folder})
    ended = asked.wait_for_event(*_SAVEPOINT_ENDS)
    if ended["event"] == _FAILED:
        raise HeadgateError(ended["code"], ended["message"], hint=ended["hint"])
    return decode(Savepoint, ended)


def start_job(home: JobFolder, *, consent: Consent = NO_CONSENT) -> Detached:
    """Start a job again as it was last run, in the background."""
    flow, options = get_start(home, consent=consent)
    return start_detached(flow, replace(options, print_rows=0, verbose=False))


def get_start(home: JobFolder, *, consent: Consent = NO_CONSENT) -> tuple[str, RunOptions]:
    """Return the flow and the options that a job was last run with.

    Args:
        consent: What the user agrees to this time.

    Raises:
        HeadgateError: JOB_FILE_BROKEN, or JOB_NEVER_RAN if no attempt got as far as to run.
    """
    stored = home.find_json("job.json")
    if stored is None:
        raise HeadgateError(
            "JOB_NEVER_RAN",
            f"cannot start job {home.name!r}: it has never run, so its settings are unknown",
            hint="headgate run FLOW",
        )
    try:
        flow, options = str(stored["flow"]), decode(RunOptions, stored["options"])
    except (KeyError, DecodeError) as error:
        raise broken_file(home.path / "job.json", error) from error
    # The folder may have been moved since; where it was found is where it is.
    return flow, replace(options, home=home.root, consent=consent)


def restart_job(
    home: JobFolder, *, patience: Patience | None = None, consent: Consent = NO_CONSENT
) -> Detached:
    """Stop a job between two batches and start it again; one that is not running is started."""
    # Asked first: a job that cannot be started again is better left running.
    flow, options = get_start(home, consent=consent)
    if has_supervisor(home):
        asked = Request(home, Verb.RESTART, patience or Patience())
        asked.send_or_raise({})
        view = asked.wait_for_end()
        if view.state != JobState.STOPPED:
            raise ended_otherwise(view, "restart")
    return start_detached(flow, replace(options, print_rows=0, verbose=False))


def _get_last_savepoint(asked: Request, name: str) -> Savepoint:
    """Return the savepoint of a job that has stopped, or raise why it was not taken."""
    ended = asked.find_last_event(*_SAVEPOINT_ENDS)
    if ended is None:
        raise HeadgateError(
            "SAVEPOINT_NOT_TAKEN",
            f"cannot find the savepoint of job {name!r}: its events do not mention it",
            hint=f"headgate checkpoints {name}",
            domain=Domain.INTERNAL,
        )
    if ended["event"] == _FAILED:
        raise HeadgateError(
            ended["code"],
            f"job {name!r} is STOPPED, and its savepoint was not taken: {ended['message']}",
            hint=f"headgate savepoint {name}",
        )
    return decode(Savepoint, ended)


def _free_place(savepoint: str) -> str:
    """Return a savepoint's folder as its supervisor finds it; one that is there is refused."""
    if not savepoint:
        return savepoint
    folder = Path(savepoint).absolute()
    if folder.exists():
        raise HeadgateError(
            "CHECKPOINT_EXISTS",
            f"cannot take a savepoint in {folder}: it already exists",
            hint="choose a folder that does not exist",
        )
    return str(folder)


def _savepoint_at_rest(home: JobFolder, to: str, clock: Clock) -> Savepoint:
    from headgate.jobs.checkpoints.keeper import CheckpointKeeper
    from headgate.jobs.runs.lineage import get_committed

    # Held, so that nobody starts the job while its files are copied.
    with home.locked():
        run, _ = get_committed(home, verb="take a savepoint")
        keeper = CheckpointKeeper(home, run, RunOptions(), clock)
        taken = keeper.begin_savepoint(to)(lambda: False)
    return decode(Savepoint, taken)
