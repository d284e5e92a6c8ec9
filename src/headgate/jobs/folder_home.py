"""`FolderHome`: the interface to the jobs of a folder on this machine.

Importing it imports neither Spark nor numpy, so that a command that does not need them starts fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from headgate.checkpoints.checkpoint import Checkpoint
from headgate.engine.attempt.executors import Executors
from headgate.engine.attempt.vitals import Vitals
from headgate.jobs.audit.job_audit import audit_job
from headgate.jobs.checkpoints.listing import (
    get_checkpoint,
    list_checkpoints,
    pin_checkpoint,
    verify_anything,
)
from headgate.jobs.checkpoints.portable import PortableSavepoint, take_portable
from headgate.jobs.checkpoints.restore_plan import RestorePlan
from headgate.jobs.control import requests, restore_start, verbs
from headgate.jobs.control.requests import Patience
from headgate.jobs.dead_letters import replay
from headgate.jobs.dead_letters.listing import get_dead_letter, list_dead_letters
from headgate.jobs.job_folder import JobFolder
from headgate.jobs.lifecycle.vocabulary import Verb
from headgate.jobs.metrics.counter_file import read_counters
from headgate.jobs.metrics.counters import Counters
from headgate.jobs.metrics.executor_file import find_executors
from headgate.jobs.metrics.vitals_file import find_vitals
from headgate.jobs.registry import get_job, list_job_names
from headgate.jobs.removal import deletion, pruning
from headgate.jobs.secrets import find_secrets
from headgate.jobs.state.client import StateDesk
from headgate.jobs.state.overview import list_state
from headgate.jobs.upkeep import orders
from headgate.jobs.upkeep.kept_jobs import Session
from headgate.jobs.views import log_search, logs
from headgate.jobs.views.checkpoint_history import list_checkpoint_history
from headgate.jobs.views.events import list_events
from headgate.jobs.views.exceptions import list_exceptions
from headgate.jobs.views.graph import view_graph
from headgate.jobs.views.job import JobView, list_jobs, newest_checkpoint, show_job, view_job
from headgate.jobs.views.logs import Log, LogPage
from headgate.jobs.views.outputs import list_outputs, tail_output
from headgate.jobs.views.past import view_past
from headgate.jobs.views.processes import view_processes
from headgate.jobs.views.samples import read_samples

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def _on_job(
    verb: str, operation: Callable[Concatenate[JobFolder, _Arguments], _Answer]
) -> Callable[Concatenate[FolderHome, str, _Arguments], _Answer]:
    """Return an operation on a job's folder as a method that takes the job's name.

    Args:
        verb: For JOB_NOT_FOUND, as in `cannot stop job 'orders'`.
    """

    @wraps(operation)
    def method(
        home: FolderHome, job: str, /, *args: _Arguments.args, **options: _Arguments.kwargs
    ) -> _Answer:
        return operation(get_job(home.folder, job, verb=verb), *args, **options)

    return method


def _on_folder(
    operation: Callable[Concatenate[Path, _Arguments], _Answer],
) -> Callable[Concatenate[FolderHome, _Arguments], _Answer]:
    """Return an operation on a folder of jobs as a method."""

    @wraps(operation)
    def method(
        home: FolderHome, /, *args: _Arguments.args, **options: _Arguments.kwargs
    ) -> _Answer:
        return operation(home.folder, *args, **options)

    return method


class FolderHome:
    """The jobs of a folder on this machine: `Home` without a server, and more for a server.

    Attributes:
        state: The state of the jobs; the first question starts the reader of state.
        session: The jobs that a server of this folder keeps up.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = StateDesk(folder)
        self.session = Session(folder)

    @property
    def where(self) -> str:
        return str(self.folder)

    # Views.

    names = _on_folder(list_job_names)
    jobs = _on_folder(list_jobs)

    def job(self, name: str, /, *, verb: str = "show") -> JobView:
        """Return the summary of a job.

        Args:
            verb: For JOB_NOT_FOUND.
        """
        return view_job(get_job(self.folder, name, verb=verb))

    details = _on_job("show", show_job)
    graph = _on_job("show the graph of", view_graph)
    processes = _on_job("show the processes of", view_processes)
    events = _on_job("list the events of", list_events)
    exceptions = _on_job("list the exceptions of", list_exceptions)
    samples = _on_job("show the measurements of", read_samples)
    outputs = _on_job("show the outputs of", list_outputs)
    output_records = _on_job("show the outputs of", tail_output)
    operators = _on_job("read the state of", list_state)

    def tail_log(
        self, job: str, log: Log, /, *, last: int, executor: str | None = None
    ) -> list[bytes]:
        return logs.tail_log(self._log(job, log, executor=executor), last=last)

    def follow_log(
        self, job: str, log: Log, /, *, last: int, executor: str | None = None
    ) -> Iterator[bytes]:
        return logs.follow_log(self._log(job, log, executor=executor), last=last)

    def page_log(
        self,
        job: str,
        log: Log,
        /,
        *,
        last: int,
        after: str | None = None,
        executor: str | None = None,
    ) -> LogPage:
        """Return the last lines of a job's log, or the lines after a page."""
        return logs.read_log(self._log(job, log, executor=executor), last=last, after=after)

    search_log = _on_job("read the log of", log_search.search_log)
    filter_log = _on_job("read the log of", log_search.filter_log)
    _log = _on_job("read the log of", logs.get_log)

    def newest_checkpoint(self, view: JobView) -> Checkpoint | None:
        return newest_checkpoint(JobFolder(self.folder, view.name), view)

    def vitals(self, view: JobView) -> Vitals | None:
        return find_vitals(JobFolder(self.folder, view.name)) if view.is_alive else None

    def executors(self, view: JobView) -> Executors | None:
        return find_executors(JobFolder(self.folder, view.name)) if view.is_alive else None

    def counters(self, view: JobView) -> Counters:
        return read_counters(JobFolder(self.folder, view.name))

    def secrets(self, *texts: str) -> frozenset[str]:
        """Return the values of the secrets to which the jobs and some texts refer."""
        return find_secrets((JobFolder(self.folder, name) for name in self.names()), *texts)

    # Lifecycle.

    start = _on_job("start", verbs.start_job)
    stop = _on_job("stop", verbs.stop_job)
    cancel = _on_job("cancel", verbs.cancel_job)
    preview_cancel = _on_job("cancel", verbs.foresee_cancel)
    restart = _on_job("restart", verbs.restart_job)
    pause = _on_job("pause", verbs.pause_job)
    resume = _on_job("resume", verbs.resume_job)
    last_start = _on_job("start", verbs.get_start)
    delete = _on_job("delete", deletion.delete_job)
    check_deletable = _on_job("delete", deletion.check_deletable)
    preview_delete = _on_job("delete", deletion.preview_delete)
    prune = _on_job("prune", pruning.prune_job)

    def check_running(self, job: str, /, *, verb: str) -> JobView:
        return requests.check_running(get_job(self.folder, job, verb=verb), verb=verb)

    def check_request(self, job: str, /, *, verb: str) -> JobView:
        return requests.check_request(get_job(self.folder, job, verb=verb), Verb(verb))

    def check_at_rest(self, job: str, /, *, verb: str) -> JobView:
        return requests.check_at_rest(get_job(self.folder, job, verb=verb), verb=verb)

    # Lifecycle for a server: the user's code runs in another process.

    resolve_submit = _on_folder(orders.resolve_submit)
    submit = staticmethod(orders.submit_flow)
    start_kept = _on_job("start", orders.start_kept)
    restart_kept = _on_job("restart", orders.restart_kept)
    restore_kept = _on_job("restore", orders.restore_kept)
    resolve_apart = _on_job("restore", orders.resolve_apart)
    hold_checkpoint = _on_job("restore", restore_start.hold_checkpoint)

    # Checkpoints.

    checkpoints = _on_job("list the checkpoints of", list_checkpoints)
    checkpoint = _on_job("list the checkpoints of", get_checkpoint)
    checkpoint_history = _on_job("list the checkpoints of", list_checkpoint_history)
    past = _on_job("show the past of", view_past)
    verify = _on_folder(verify_anything)
    pin = _on_job("list the checkpoints of", pin_checkpoint)
    take_savepoint = _on_job("take a savepoint of", verbs.take_savepoint)
    prepare_restore = _on_job("restore", restore_start.prepare_restore)
    restore = _on_job("restore", restore_start.restore_job)

    def take_portable_savepoint(
        self,
        job: str,
        /,
        *,
        to: str | Path | None = None,
        patience: Patience | None = None,  # noqa: ARG002 - only a server is waited for
    ) -> PortableSavepoint:
        return take_portable(get_job(self.folder, job, verb="take a savepoint of"), to=to)

    def preview_restore(
        self, job: str, /, *, source: str | None, at: str | None, drop: Collection[str]
    ) -> RestorePlan:
        return self.prepare_restore(job, source=source, at=at, drop=drop).plan

    # Records.

    dead_letters = _on_job("list the dead letters of", list_dead_letters)
    dead_letter = _on_job("show a dead letter of", get_dead_letter)
    replay_dead_letters = _on_job("replay dead letters of", replay.replay_dead_letters)
    audit = _on_job("audit", audit_job)
