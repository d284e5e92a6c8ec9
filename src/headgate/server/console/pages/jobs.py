"""The page of all jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from markupsafe import Markup
from nicegui import ui

from headgate.jobs.views.job import JobView
from headgate.server.console.charts.sparkline import Trend, sparkline
from headgate.server.console.pages.glance import Glance, Glances
from headgate.server.console.panels.submission import ask_for_flow
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import format_backlog
from headgate.server.console.parts.frame import page
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import note, render
from headgate.server.context import get_context
from headgate.server.signed_in import current_access

_LOOK_EVERY_S = 2.0
_glances = Glances()


async def show_page() -> None:
    """Build the page."""
    seen = await widgets.ask(_glances.look, get_context(), trends=False)
    with page("Jobs"):
        shown = _Jobs(seen or Glance((), {}))
        widgets.every(_LOOK_EVERY_S, shown.look, at_once=True)


class _Jobs:
    """The list of jobs on one page: what is shown of it, and how it is kept up to date."""

    def __init__(self, seen: Glance) -> None:
        self._seen = seen
        self._state = ""
        self._text = ""
        with ui.element("div").classes("hg-toolbar"):
            self._counts = Live().on_act(self._choose).classes("hg-counts")
            ui.element("span").classes("hg-space")
            find = ui.input(placeholder="Filter  ( / )", on_change=lambda e: self._find(e.value))
            find.props('dense outlined clearable debounce=150 data-filter aria-label="Filter jobs"')
            find.classes("hg-field hg-low")
            if current_access().may_operate and get_context().settings.flows is not None:
                widgets.button("Submit a flow", ask_for_flow, kind="main")
        with ui.element("section").classes("hg-panel").props('aria-label="Jobs"'):
            self._table = Live().classes("hg-table-box")
        self._show()

    async def look(self) -> None:
        """Read the jobs again and show what changed."""
        seen = await widgets.ask(_glances.look, get_context())
        if seen is not None:
            self._seen = seen
            self._show()

    def _choose(self, _action: str, state: str) -> None:
        self._state = state
        self._show()

    def _find(self, text: str | None) -> None:
        self._text = text or ""
        self._show()

    def _show(self) -> None:
        jobs = filter_jobs(self._seen.jobs, self._text, self._state)
        self._counts.show(count_states(self._seen.jobs, self._state))
        if jobs:
            self._table.show(show_jobs_table(jobs, self._seen.trends, datetime.now(UTC)))
        else:
            self._table.show(_tell_why_none(any_jobs=bool(self._seen.jobs)))


def filter_jobs(jobs: Sequence[JobView], text: str, state: str) -> list[JobView]:
    """Return the jobs in a state (all, if empty) that have every word in what is shown of them."""
    words = text.lower().split()
    return [
        job
        for job in jobs
        if (not state or job.state == state)
        and all(word in f"{job.name} {job.state} {job.reason}".lower() for word in words)
    ]


def count_states(jobs: Sequence[JobView], chosen: str) -> Markup:
    """Return how many jobs are in each state, as buttons that show those alone."""
    # A dictionary keeps the order of its first keys.
    in_order = sorted(jobs, key=lambda job: (job.place[0], job.state))
    ranked = list(Counter(job.state for job in in_order).items())
    return render("job_counts", counts=ranked, total=len(jobs), chosen=chosen)


def show_jobs_table(jobs: Sequence[JobView], trends: Mapping[str, Trend], now: datetime) -> Markup:
    """Return jobs as a table, those that need attention first."""
    lines = [
        (job, format_lag(job), sparkline(trends.get(job.name)), _is_bad(job))
        for job in sorted(jobs, key=lambda job: job.place)
    ]
    return render("jobs", lines=lines, now=now)


def format_lag(job: JobView) -> str:
    """Return what is left to read: records, or bytes where records are not counted; and its age."""
    if {job.lag_records, job.lag_bytes} in ({0}, {0, None}):
        return "none"
    return format_backlog(job.lag_records, job.lag_bytes, job.lag, unit=" records")


def _is_bad(job: JobView) -> bool:
    return bool(job.reason) and job.needs_attention


def _tell_why_none(*, any_jobs: bool) -> Markup:
    if any_jobs:
        return note("No job is like that. Clear the filter to see all.")
    settings = get_context().settings
    flow = "FLOW.py" if settings.flows is None else f"{settings.flows}/FLOW.py"
    return render("no_jobs", flow=flow, home=settings.home)
