"""The page of one job: what it is, what goes through it, how it went, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from markupsafe import Markup
from nicegui import ui

from headgate.errors import HeadgateError
from headgate.jobs.views.events import Events
from headgate.jobs.views.exceptions import Exceptions
from headgate.jobs.views.graph import GraphView
from headgate.jobs.views.job import JobView
from headgate.server.console.charts import graph
from headgate.server.console.charts.job_charts import POINTS, Charts
from headgate.server.console.charts.job_graph import JobGraph
from headgate.server.console.pages.jobs import format_lag
from headgate.server.console.panels.job_actions import actions_for, run_action
from headgate.server.console.panels.job_history import EventsPanel, ExceptionsPanel
from headgate.server.console.panels.logs import LogsPanel
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_moment
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import render
from headgate.server.context import ServerContext, get_context
from headgate.server.security.names import check_job
from headgate.server.signed_in import current_access

_LOOK_EVERY_S = 2.0
_CHARTS_EVERY_S = 4.0
_HISTORY_EVERY_S = 5.0
_EVENTS = 30


async def show_page(job: str) -> None:
    """Build the page of a job."""
    context = get_context()
    try:
        check_job(job)
        context.check_shown(job)
        seen = await widgets.read(_read_job, context, job)
    except HeadgateError as error:
        ui.context.client.status_code = 404 if error.code.endswith("_NOT_FOUND") else 400
        with page("Job"):
            Live(widgets.error_box(error)).classes("hg-panel")
            Live(Markup('<p><a href="/">All jobs</a></p>'))
        return
    with page(job, job=job, tab="overview"):
        _JobPage(context, seen)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is read of a job again and again; `flow` is empty where it never ran."""

    job: JobView
    graph: GraphView
    flow: str
    settings: Mapping[str, Mapping[str, Any]]


class _JobPage:
    """One open page of a job, and how its parts are kept up to date."""

    def __init__(self, context: ServerContext, seen: _Seen) -> None:
        self._context = context
        self._seen = seen
        self._name = seen.job.name
        self._chosen: str | None = None
        self._build()
        self._show()
        widgets.every(_LOOK_EVERY_S, self._look, at_once=False)
        widgets.every(_CHARTS_EVERY_S, self._look_at_charts, at_once=True)
        widgets.every(_HISTORY_EVERY_S, self._look_at_history, at_once=True)

    def _build(self) -> None:
        with ui.element("section").classes("hg-panel").props('aria-label="Job"'):
            self._head = Live()
            self._buttons = Live().classes("hg-actions hg-job-actions")
            self._buttons.on_act(lambda action, _: self._act(action))
        with widgets.panel("Graph", note="counts since the job was last started"):
            self._build_graph()
        with widgets.panel("Over time"):
            self._charts = Charts(self._look_at_charts)
        with widgets.panel("Exceptions"):
            self._exceptions = ExceptionsPanel()
        with ui.element("div").classes("hg-columns"):
            with widgets.panel(
                "Settings", note=f"flow {self._seen.flow}" if self._seen.flow else ""
            ):
                self._settings = Live().classes("hg-table-box hg-narrow")
            with widgets.panel("Events", note=f"the last {_EVENTS}, newest first"):
                self._events = EventsPanel()
        with widgets.panel("Logs"):
            LogsPanel(self._name)

    def _build_graph(self) -> None:
        with ui.element("div").classes("hg-graph-area"):
            self._drawing = JobGraph(partial(self._choose, "node")).classes("hg-graph-box")
            self._side = Live().classes("hg-graph-side").on_act(self._choose)
            self._side.props('aria-live="polite"')
        with ui.element("details").classes("hg-details"):
            Live("As a table", tag="summary")
            self._nodes = Live().classes("hg-table-box").on_act(self._choose)

    async def _look(self) -> None:
        seen = await widgets.ask(_read_job, self._context, self._name)
        if seen is not None:
            self._seen = seen
            self._show()

    async def _look_at_charts(self) -> None:
        span = self._charts.since
        # Of a job at rest, the last minutes are those before it came to rest.
        job, now = self._seen.job, datetime.now(UTC)
        now = now if job.is_alive else job.since or now
        since = None if span is None else now - span
        samples = await widgets.ask(
            self._context.home.samples, self._name, since=since, points=POINTS
        )
        if samples is not None:
            self._charts.show(samples, now)

    async def _look_at_history(self) -> None:
        history = await widgets.ask(_read_history, self._context, self._name)
        if history is not None:
            exceptions, events = history
            self._exceptions.show(exceptions)
            self._events.show(events)

    async def _act(self, action: str) -> None:
        if await run_action(action, self._seen.job):
            await self._look()

    def _choose(self, action: str, node: str) -> None:
        self._chosen = node if action == "node" and node != self._chosen else None
        self._show_graph()

    def _show(self) -> None:
        job = self._seen.job
        self._head.show(job_head(job, datetime.now(UTC)))
        actions = actions_for(job) if current_access().may_operate else {}
        self._buttons.show_template("job_buttons", actions=actions)
        self._settings.show_template("settings", settings=self._seen.settings)
        self._show_graph()

    def _show_graph(self) -> None:
        view = self._seen.graph
        self._drawing.show(view, self._chosen)
        self._nodes.show(graph.show_nodes(view))
        self._side.show(side_panel(view, self._chosen))


def _read_job(context: ServerContext, name: str) -> _Seen:
    home = context.home
    # In short: a job may have thousands of checkpoints, and this is read every other second.
    job = context.hide_in(home.job(name))
    try:
        flow, options = home.last_start(name)
    except HeadgateError:
        # No attempt of it ever ran, so that nothing is known of how.
        return _Seen(job, home.graph(name), "", {})
    return _Seen(job, home.graph(name), flow, context.hide_in(dict(options.settings)))


def _read_history(context: ServerContext, name: str) -> tuple[Exceptions, Events]:
    home = context.home
    seen = home.exceptions(name), home.events(name, limit=_EVENTS)
    return context.hide_in(seen)


def job_head(job: JobView, now: datetime) -> Markup:
    """Return what a job is, at a glance; in trouble, why and what to do."""
    return render(
        "job_head",
        job=job,
        now=now,
        attempt=_attempt(job),
        lag=format_lag(job),
        watermark=_watermark(job.status),
    )


def _watermark(status: Mapping[str, Any]) -> str:
    holder = status.get("held_back_by")
    return format_moment(status.get("watermark")) + (f", held back by {holder}" if holder else "")


def _attempt(job: JobView) -> str:
    restarts = int(job.status.get("restarts") or 0)
    again = f", {restarts} restarts" if restarts != 1 else ", 1 restart"
    return f"{job.attempt}{again if restarts else ''}"


def side_panel(view: GraphView, chosen: str | None) -> Markup:
    """Return the details of the node that was chosen; nothing where none was."""
    node = next((node for node in view.nodes if node.id == chosen), None)
    if node is None:
        return Markup()
    return render("side_panel", node=node, rows=graph.node_facts(view, node))
