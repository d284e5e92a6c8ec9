"""The frame of every page: header, breadcrumbs, the tabs of a job, and the place for content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from markupsafe import Markup
from nicegui import ui

from headgate.server.console.parts.early_page import early_page
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import render
from headgate.server.console.parts.widgets import place_alert
from headgate.server.context import get_context
from headgate.server.signed_in import current_access

# On a machine that is busy, a page that comes late is better than none.
_LONGEST_BUILD_S = 30.0


def serve(path: str, build: Callable[..., Awaitable[None]]) -> None:
    """Serve a page under a path; `build` makes it, anew for each browser."""
    ui.page(path, response_timeout=_LONGEST_BUILD_S)(build)


@contextmanager
def page(title: str, *, job: str | None = None, tab: str = "overview") -> Iterator[ui.element]:
    """Open a page: its frame is built, and what is built inside is its content.

    Args:
        title: The page's heading.
        job: The job it is about, whose tabs are shown.
        tab: Which of them is this page: overview, checkpoints, state or outputs.
    """
    words = [title] if job is None or tab == "overview" else [title, job]
    ui.page_title(" · ".join([*words, "Headgate"]))
    with ui.element("header").classes("hg-header") as header:
        Live(_header()).style("display: contents")
    with ui.element("main").classes("hg-main").props("tabindex=-1") as main:
        ui.skip_link("Skip to content", target=main)
        if job is not None:
            crumbs = Live(render("crumbs", job=job, tab=tab), tag="nav")
            crumbs.classes("hg-crumbs").props('aria-label="Breadcrumbs"')
        with ui.element("div").classes("hg-title"):
            Live(Markup("<h1>{}</h1>").format(title))
        if job is not None:
            tabs = Live(render("tabs", job=job, tab=tab), tag="nav")
            tabs.classes("hg-tabs").props('aria-label="Job"')
        place_alert()
        yield main
    # Plain text: what NiceGUI adds to `Markup` would be escaped.
    ui.add_body_html(str(early_page([header, main])))


def _header() -> Markup:
    settings = get_context().settings
    access = current_access() if settings.tokens else None
    return render("header", home=settings.home, access=access)
