"""The verbs on jobs: each sends a request to a job's supervisor, and waits for its effect."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from headgate._clock import Clock
from headgate._codec import DecodeError, alias, decode, shaped
from headgate._locations import Location, parse_location
from headgate.checkpoints.checkpoint import Checkpoint
from headgate.checkpoints.savepoint import check_place
from headgate.errors import Domain, HeadgateError
from headgate.jobs.checkpoints.listing import list_checkpoints
from headgate.jobs.control.requests import Patience, Request, check_running
from headgate.jobs.flow_file import find_flow
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
    name: str = field(metadata=alias("savepoint"))
    folder: Location
    batch: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stopped job, with its savepoint if one was requested."""

    view: JobView
    savepoint: Savepoint | None = None

    __get_pydantic_core_schema__ = shaped(flatten="view")


@dataclass(frozen=True, slots=True)
class Loss:
    """What a cancel would delete.

    Attributes:
        deletes_state: Whether it would delete the job's state, as --on-cancel says.
        checkpoints: The ids of the checkpoints.
        bytes: The size of the files that only these checkpoints have.
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
    """Stop a job between two batches, and wait until its process has ended.

    Args:
        savepoint: The folder of a savepoint to take at the end; None for no savepoint, empty for
            a folder in the job's own.
        drain: Read all present records first.
    """
    request = Request(home, Verb.STOP, patience)
    request.send(drain=drain, savepoint=None if savepoint is None else _free_place(home, savepoint))
    refusal = request.find_refusal()
    if refusal is not None and view_job(home).state != JobState.STOPPED:
        raise refusal
    view = request.wait_for_end(JobState.STOPPED)
    return Stopped(view, None if savepoint is None else _get_last_savepoint(request, home.name))


def cancel_job(home: JobFolder, *, patience: Patience | None = None) -> JobView:
    """End a job at once, and wait until its process has ended."""
    request = Request(home, Verb.CANCEL, patience)
    request.send_or_raise()
    return request.wait_for_end(JobState.CANCELED)


def foresee_cancel(home: JobFolder) -> Loss:
    """Return what a cancel of a job would delete, or raise JOB_NOT_RUNNING as a cancel would."""
    view = check_running(home, verb="cancel")
    stored = (home.find_json("job.json") or {}).get("options") or {}
    deletes = bool(stored.get("delete_on_cancel"))
    kept = list_checkpoints(home) if deletes else []
    lost = [checkpoint for checkpoint in kept if checkpoint.kind == "checkpoint"]
    return Loss(
        view=view,
        deletes_state=deletes,
        checkpoints=tuple(checkpoint.id for checkpoint in lost),
        bytes=sum(kept.new_bytes for kept in lost if isinstance(kept, Checkpoint)),
    )


def pause_job(home: JobFolder, *, patience: Patience | None = None) -> JobView:
    """Make a job stop reading, and wait until it has; after a restart it stays paused."""
    return _hold(home, Verb.PAUSE, JobState.PAUSED, patience)


def resume_job(home: JobFolder, *, patience: Patience | None = None) -> JobView:
    """Let a paused job read on, and wait until it does, or will after its restart."""
    return _hold(home, Verb.RESUME, JobState.RUNNING, patience)


def _hold(home: JobFolder, verb: Verb, state: JobState, patience: Patience | None) -> JobView:
    request = Request(home, verb, patience)
    request.send_or_raise()
    held = verb is Verb.PAUSE

    def is_done(view: JobView) -> bool:
        restarts = view.state == JobState.RESTARTING
        return view.state == state or (restarts and bool(view.status.get("held")) is held)

    return request.wait_for(is_done)


def take_savepoint(
    home: JobFolder, *, to: str | Path | None = None, patience: Patience | None = None
) -> Savepoint:
    """Take a savepoint of a job's last batch, whether the job is running or not.

    Args:
        to: The savepoint's folder, which must not exist; by default one in the job's own.
    """
    folder = "" if to is None else _free_place(home, str(to))
    if not has_supervisor(home):
        return _savepoint_at_rest(home, folder, (patience or Patience()).clock)
    request = Request(home, Verb.SAVEPOINT, patience)
    request.send_or_raise(to=folder)
    end = request.wait_for_event(*_SAVEPOINT_ENDS)
    if end["event"] == _FAILED:
        raise HeadgateError(end["code"], end["message"], hint=end["hint"])
    return decode(Savepoint, end)


def start_job(home: JobFolder, *, consent: Consent = NO_CONSENT) -> Detached:
    """Start a job again as it was last run, in the background."""
    flow, options = get_start(home, consent=consent)
    return start_detached(flow, replace(options, print_rows=0, verbose=False))


def get_start(home: JobFolder, *, consent: Consent = NO_CONSENT) -> tuple[str, RunOptions]:
    """Return the flow and the options with which a job was last run, or was to be run first.

    The end of that run (`--until-caught-up`, `--drain`) is not among them.

    Raises:
        HeadgateError: JOB_FILE_BROKEN, or JOB_NEVER_RAN if no start was written down.
    """
    stored = home.find_json("job.json")
    if stored is None:
        raise HeadgateError(
            "JOB_NEVER_RAN",
            f"cannot start job {home.name!r}: it has never run, so its settings are unknown",
            hint="headgate run FLOW",
        )
    try:
        flow = find_flow(home, str(stored["flow"]))
        options = decode(RunOptions, stored["options"])
    except (KeyError, DecodeError) as error:
        raise broken_file(home.path / "job.json", error) from error
    # The folder may have been moved since.
    return flow, replace(
        options, home=home.root, consent=consent, until_caught_up=False, drain=False
    )


def restart_job(
    home: JobFolder, *, patience: Patience | None = None, consent: Consent = NO_CONSENT
) -> Detached:
    """Stop a job between two batches, if it is running, and start it again."""
    # First: a job that cannot be started again is left running.
    flow, options = get_start(home, consent=consent)
    if has_supervisor(home):
        request = Request(home, Verb.RESTART, patience)
        request.send_or_raise()
        request.wait_for_end(JobState.STOPPED)
    return start_detached(flow, replace(options, print_rows=0, verbose=False))


def _get_last_savepoint(request: Request, name: str) -> Savepoint:
    """Return the savepoint of a stopped job, or raise why it was not taken."""
    end = request.find_last_event(*_SAVEPOINT_ENDS)
    if end is None:
        raise HeadgateError(
            "SAVEPOINT_NOT_TAKEN",
            f"cannot find the savepoint of job {name!r}: its events do not mention it",
            hint=f"headgate checkpoints {name}",
            domain=Domain.INTERNAL,
        )
    if end["event"] == _FAILED:
        raise HeadgateError(
            end["code"],
            f"job {name!r} is STOPPED, and its savepoint was not taken: {end['message']}",
            hint=f"headgate savepoint {name}",
        )
    return decode(Savepoint, end)


def _free_place(home: JobFolder, savepoint: str) -> str:
    """Return the whole name of a savepoint's folder, or refuse one that exists."""
    if not savepoint:
        return savepoint
    folder = parse_location(savepoint).absolute()
    check_place(folder, job=home.name)
    if folder.exists():
        raise HeadgateError(
            "CHECKPOINT_EXISTS",
            f"cannot take a savepoint in {folder}: it already exists",
            hint="choose a folder that does not exist",
        )
    return str(folder)


def _savepoint_at_rest(home: JobFolder, to: str, clock: Clock) -> Savepoint:
    from headgate.jobs.checkpoints.keeper import CheckpointKeeper
    from headgate.jobs.runs.job_stores import held_stores
    from headgate.jobs.runs.lineage import get_committed

    # The lock prevents a start of the job while its files are copied.
    with home.locked(), held_stores(home, verb="take a savepoint of"):
        run, _ = get_committed(home, verb="take a savepoint")
        keeper = CheckpointKeeper(home, run, RunOptions(), clock)
        taken = keeper.begin_savepoint(to)(lambda: False)
    return decode(Savepoint, taken)
