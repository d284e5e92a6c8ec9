"""The page of a job's checkpoints: what there is to go back to, and going back."""

from __future__ import annotations

from datetime import UTC, datetime

from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.views.job import JobView
from headgate.jobs.views.past import Past
from headgate.server.console.panels.checkpoint_history import HistoryPanel
from headgate.server.console.panels.job_actions import run_action
from headgate.server.console.panels.questions import VIEW_ONLY
from headgate.server.console.panels.restore import RestorePanel
from headgate.server.console.parts import widgets
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.texts.checkpoints import tell_settings
from headgate.server.context import ServerContext, get_context
from headgate.server.signed_in import current_access

_LOOK_EVERY_S = 2.0


async def show_page(job: str) -> None:
    """Build the page."""
    with page("Checkpoints", job=job, tab="checkpoints"):
        view = await widgets.ask(get_context().shown_job, job)
        if view is not None:
            await _Checkpoints(view).build()


class _Checkpoints:
    """What one page shows of a job's checkpoints."""

    def __init__(self, view: JobView) -> None:
        self._job = view.name
        self._view = view
        self._may = current_access().may_operate

    async def build(self) -> None:
        """Build what is on the page, with the checkpoints there are."""
        with widgets.panel("Overview"):
            with ui.element("div").classes("hg-toolbar"):
                widgets.button(
                    "Take a savepoint", lambda: self._act("savepoint"), kind="main"
                ).set_enabled(self._may)
                self._stop = widgets.button(
                    "Stop with savepoint", lambda: self._act("stop-savepoint"), kind="danger"
                )
                self._why_not = Live(tag="span").classes("hg-quiet")
            self._overview = Live()
        self._restore = RestorePanel(self._view, self._look)
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
        self._view, past, settings = seen
        self._stop.set_enabled(self._may and self._view.is_alive)
        why_not = f"The job is {self._view.state}, so it cannot be stopped."
        self._why_not.show(VIEW_ONLY if not self._may else "" if self._view.is_alive else why_not)
        self._settings.show_template("facts", rows=settings)
        history = await self._history.look(past)
        if history is not None:
            self._overview.show_template(
                "checkpoint_overview", history=history, now=datetime.now(UTC)
            )
        self._restore.show(past, self._view)

    async def _act(self, action: str) -> None:
        await run_action(action, self._view)
        await self._look()


def _read(context: ServerContext, job: str) -> tuple[JobView, Past, list[tuple[str, str]]]:
    view, past = context.shown_job(job), context.home.past(job)
    try:
        _, options = context.home.last_start(job)
    except HeadgateError:
        # No attempt of it ever ran, so its settings are not known.
        return view, past, []
    return view, past, tell_settings(context.hide_in(dict(options.settings)))
