"""The page of a job's checkpoints: what there is to go back to, and going back."""

from __future__ import annotations

from datetime import UTC, datetime

from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.views.job import JobView
from headgate.jobs.views.past import Past
from headgate.server.actions import verbs
from headgate.server.console.pages.known_job import is_known
from headgate.server.console.panels.checkpoint_history import HistoryPanel
from headgate.server.console.panels.questions import VIEW_ONLY, ask_and_do
from headgate.server.console.panels.restore import RestorePanel
from headgate.server.console.parts import widgets
from headgate.server.console.parts.frame import page, serve
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.page_style import add_look
from headgate.server.console.texts.checkpoints import ask_savepoint, ask_stop, tell_settings
from headgate.server.context import ServerContext, get_context
from headgate.server.signed_in import current_access

_LOOK_EVERY_S = 2.0


def register() -> None:
    """Serve the page."""
    serve("/jobs/{job}/checkpoints", show_page)


async def show_page(job: str) -> None:
    """Build the page."""
    add_look()
    shown = _Checkpoints(job)
    with page("Checkpoints", job=job, tab="checkpoints"):
        if await is_known(job):
            await shown.build()


class _Checkpoints:
    """What one page shows of a job's checkpoints."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._view: JobView | None = None
        self._may = current_access().may_operate

    async def build(self) -> None:
        """Build what is on the page, with the checkpoints there are."""
        with widgets.panel("Overview"):
            with ui.element("div").classes("hg-toolbar"):
                self._take = widgets.button("Take a savepoint", self._take_savepoint, kind="main")
                self._stop = widgets.button("Stop with savepoint", self._stop_job, kind="danger")
                self._why_not = Live(tag="span").classes("hg-quiet")
            self._overview = Live()
        self._restore = RestorePanel(self._job, self._look)
        self._history = HistoryPanel(self._job, self._restore.restore, self._look)
        with widgets.panel("Configuration"):
            self._settings = Live()
        await self._look()
        widgets.every(_LOOK_EVERY_S, self._keep_up, at_once=True)

    async def _keep_up(self) -> None:
        await self._look()
        await self._restore.foresee()

    async def _look(self) -> None:
        seen = await widgets.ask(_read, get_context(), self._job)
        if seen is None:
            return
        view, past, settings = seen
        self._view = view
        self._take.set_enabled(self._may)
        self._stop.set_enabled(self._may and view.is_alive)
        self._why_not.show(self._tell_why_not(view))
        self._settings.show_template("facts", rows=settings)
        history = await self._history.look(past)
        if history is not None:
            self._overview.show_template(
                "checkpoint_overview", history=history, now=datetime.now(UTC)
            )
        self._restore.show(past, view)

    def _tell_why_not(self, view: JobView) -> str:
        if not self._may:
            return VIEW_ONLY
        return "" if view.is_alive else f"The job is {view.state}, so it cannot be stopped."

    async def _take_savepoint(self) -> None:
        view = self._view
        if view is not None:
            question = ask_savepoint(self._job, view.state, alive=view.is_alive)
            await ask_and_do(question, verbs.take_savepoint, self._job)
            await self._look()

    async def _stop_job(self) -> None:
        await ask_and_do(ask_stop(self._job), verbs.stop, self._job, savepoint=True)
        await self._look()


def _read(context: ServerContext, job: str) -> tuple[JobView, Past, list[tuple[str, str]]]:
    context.check_shown(job)
    home = context.home
    view = home.job(job)
    try:
        _, options = home.last_start(job)
    except HeadgateError:
        # No attempt of it ever ran, so that nobody knows its settings.
        return view, home.past(job), []
    return view, home.past(job), tell_settings(context.hide_in(dict(options.settings)))
