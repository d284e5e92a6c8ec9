"""What an action on a job means for whether the server keeps it up."""

from __future__ import annotations

from typing import Any

from headgate._codec import encode
from headgate.errors import HeadgateError
from headgate.jobs.views.job import JobView
from headgate.server.context import ServerContext
from headgate.server.operations import Progress
from headgate.server.security.access import Access


def find_dead(context: ServerContext, job: str, *, verb: str) -> JobView | None:
    """Return a job that is not running but kept up, so that it would be taken up again."""
    view = context.home.job(job, verb=verb)
    if view.is_alive or not context.keeps_up:
        return None
    return view if job in context.home.session.list() else None


def let_go(context: ServerContext, view: JobView) -> dict[str, Any]:
    """Keep a job up no more that is not running; return what is told of it."""
    context.home.session.let_go(view.name)
    says = f"job {view.name} was not running; it is not kept up any more"
    return {**encode(view), "kept_up": False, "says": says}


class StartAgain:
    """Starts a job as it was that was stopped for something that then failed."""

    def __init__(
        self, context: ServerContext, access: Access, view: JobView, tell: Progress
    ) -> None:
        self._home = context.home
        self._job = view.name
        self._was_paused = bool(view.status.get("held"))
        self._by = access.who
        self._tell = tell
        self._keep = context.keeps_up and self._job in self._home.session.list()

    def start_after(self, failure: Exception) -> None:
        """Start the job; where that fails, too, raise what failed first with both reasons."""
        self._tell("starting it again as it was")
        verb, wanted = "start", "started"
        try:
            self._home.start_kept(self._job, by=self._by, keep=self._keep)
            if self._was_paused:
                verb, wanted = "pause", "paused"
                # It is about to start, and waits with its first batch.
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


class LetGo:
    """Does not keep a job up while it is ended; keeps it up again if that was refused."""

    def __init__(self, context: ServerContext, job: str) -> None:
        self._session = context.home.session
        self._keeps_up = context.keeps_up
        self._job = job

    def __enter__(self) -> None:
        self._before = self._session.let_go(self._job) if self._keeps_up else None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._before is not None:
            self._session.put_back(self._job, self._before)
