"""Which jobs the server starts again when they die, and how an action changes that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headgate._codec import encode
from headgate.errors import HeadgateError
from headgate.jobs.views.job import JobView
from headgate.server.actions.action import Action
from headgate.server.context import ServerContext
from headgate.server.operations import Progress


def find_dead(context: ServerContext, job: str, *, verb: str) -> JobView | None:
    """Return a job that is not running and that the server would start again."""
    view = context.home.job(job, verb=verb)
    if view.is_alive or not context.keeps_up:
        return None
    return view if job in context.home.session.list() else None


def let_go(context: ServerContext, view: JobView) -> dict[str, Any]:
    """Stop starting a job again that is not running; return the result of the operation."""
    context.home.session.let_go(view.name)
    says = f"job {view.name} was not running; it is not kept up any more"
    return {**encode(view), "kept_up": False, "says": says}


@contextmanager
def letting_go(context: ServerContext, job: str) -> Iterator[None]:
    """Do not start a job again while and after it is ended; if that fails, do so as before."""
    before = context.home.session.let_go(job) if context.keeps_up else None
    try:
        yield
    except BaseException:
        if before is not None:
            context.home.session.put_back(job, before)
        raise


class Recovery:
    """Starts a job as it was, if the action that stopped it fails."""

    def __init__(self, action: Action, view: JobView, report: Progress) -> None:
        self._home = action.home
        self._job = view.name
        self._was_paused = bool(view.status.get("held"))
        self._by = action.access.who
        self._report = report
        self._keep = action.context.keeps_up and self._job in self._home.session.list()

    def start_after(self, failure: Exception) -> None:
        """Start the job; if that fails as well, raise the first failure with both reasons."""
        self._report("starting it again as it was")
        verb, wanted = "start", "started"
        try:
            self._home.start_kept(self._job, by=self._by, keep=self._keep)
            if self._was_paused:
                verb, wanted = "pause", "paused"
                # The job is about to start, and holds its first batch.
                self._home.pause(self._job)
        except HeadgateError as error:
            if error.code == "JOB_RUNNING" or not isinstance(failure, HeadgateError):
                return
            raise HeadgateError(
                failure.code,
                f"{failure.message}; the job was stopped for it, and could not be {wanted} again: "
                f"{error.message}",
                hint=f"headgate {verb} {self._job}",
                domain=failure.domain,
                retryable=failure.retryable,
            ) from error
