"""The page of all jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from nicegui import ui

from headgate.jobs.service import JobView
from headgate.server.console.charts.sparkline import sparkline
from headgate.server.console.pages.glance import Glance, Glances, Trend
from headgate.server.console.panels.submission import ask_for_flow
from headgate.server.console.parts import widgets
from headgate.server.console.parts.formats import (
    NONE,
    format_age,
    format_bytes,
    format_duration,
    format_rate,
    format_short,
)
from headgate.server.console.parts.frame import job_path, page, serve
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.markup import Html, element, join, link
from headgate.server.context import get_context
from headgate.server.signed_in import current_access

_LOOK_EVERY_S = 2.0
_TROUBLE = (
    ("FAILED", "DEAD", "UNREADABLE"),
    ("RESTARTING",),
    ("PAUSED",),
    ("STARTING", "STOPPING", "CANCELLING", "RESCALING"),
    ("RUNNING",),
)
_COLUMNS = (
    widgets.Column("job", "Job"),
    widgets.Column("state", "State"),
    widgets.Column("uptime", "Uptime", number=True),
    widgets.Column("rate", "In", number=True),
    widgets.Column("trend", "Last 15 min"),
    widgets.Column("lag", "Lag", number=True),
    widgets.Column("checkpoint", "Last checkpoint"),
)

_glances = Glances()


def register() -> None:
    """Serve the page."""
    serve("/", show_jobs)


async def show_jobs() -> None:
    """Build the page of all jobs."""
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
            self._table = widgets.table(_COLUMNS, (), key="name", label="Jobs")
            self._nothing = Live()
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
        jobs = sort_jobs(filter_jobs(self._seen.jobs, self._text, self._state))
        now = datetime.now(UTC)
        self._counts.show(count_states(self._seen.jobs, self._state))
        self._table.set_rows(
            [job_row(each, self._seen.trends.get(each.name, ()), now) for each in jobs]
        )
        self._table.set_visibility(bool(jobs))
        self._nothing.show(_nothing(any_jobs=bool(self._seen.jobs)) if not jobs else Html())


def sort_jobs(jobs: Sequence[JobView]) -> list[JobView]:
    """Return jobs with those in trouble first, then by name."""
    return sorted(jobs, key=lambda each: (_rank(each.state), each.name))


def filter_jobs(jobs: Sequence[JobView], text: str, state: str) -> list[JobView]:
    """Return the jobs in a state (all, if empty) that have every word in what is shown of them."""
    words = text.lower().split()
    return [
        each
        for each in jobs
        if (not state or each.state == state)
        and all(word in f"{each.name} {each.state} {each.reason}".lower() for word in words)
    ]


def count_states(jobs: Sequence[JobView], chosen: str) -> Html:
    """Return how many jobs are in each state, as buttons that show those alone."""
    counts = Counter(each.state for each in jobs)
    states = sorted(counts, key=lambda state: (_rank(state), state))
    return join(
        _count("", "All", len(jobs), chosen),
        *(_count(state, widgets.badge(state), counts[state], chosen) for state in states),
    )


def job_row(job: JobView, trend: Trend, now: datetime) -> dict[str, str | Html]:
    """Return one job as a row of the table."""
    return {
        "name": job.name,
        "job": join(
            link(job.name, job_path(job.name), class_="hg-job"),
            _trouble(job) if _is_bad(job) else None,
        ),
        "state": widgets.badge(job.state),
        "uptime": format_duration(job.uptime),
        "rate": format_rate(job.records_per_s) if job.is_alive else NONE,
        "trend": sparkline(trend),
        "lag": format_lag(job),
        "checkpoint": _checkpoint(job, now),
    }


def format_lag(job: JobView) -> str:
    """Return what is left to read: records, or bytes where nobody counts records; and its age."""
    left = [
        *([f"{format_short(job.lag_records)} records"] if job.lag_records is not None else []),
        *([format_bytes(job.lag_bytes)] if job.lag_bytes is not None else []),
    ]
    if not left:
        return NONE
    if not job.lag_records and not job.lag_bytes:
        return "none"
    age = f", {format_duration(job.lag)} old" if job.lag else ""
    return " + ".join(left) + age


def _rank(state: str) -> int:
    return next((n for n, states in enumerate(_TROUBLE) if state in states), len(_TROUBLE))


def _is_bad(job: JobView) -> bool:
    return bool(job.reason) and _rank(job.state) <= 1


def _trouble(job: JobView) -> Html:
    todo = element("span", "Next: ", element("code", job.todo)) if job.todo else None
    return element("div", element("span", job.reason), todo, class_="hg-trouble")


def _checkpoint(job: JobView, now: datetime) -> str | Html:
    if job.checkpoint is None:
        return NONE
    age = element("span", format_age(job.checkpoint_at, now), class_="hg-quiet")
    return element(
        "span", link(job.checkpoint, job_path(job.name, "checkpoints")), " ", age, class_="hg-keep"
    )


def _count(state: str, label: str | Html, count: int, chosen: str) -> Html:
    return element(
        "button", label, element("span", str(count)), type="button", class_="hg-count",
        data_act="state", data_value=state, data_key=state or "all",
        aria_pressed="true" if chosen == state else "false",
    )  # fmt: skip


def _nothing(*, any_jobs: bool) -> Html:
    if any_jobs:
        return element("p", "No job is like that. Clear the filter to see all.", class_="hg-empty")
    settings = get_context().settings
    flow = "FLOW.py" if settings.flows is None else f"{settings.flows}/FLOW.py"
    return element(
        "div",
        element("p", "There are no jobs in this home yet. Start one:"),
        element("pre", element("code", f"headgate run {flow} --detach --home {settings.home}")),
        class_="hg-empty",
    )
