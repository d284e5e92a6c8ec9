"""The frame of every page: header, breadcrumbs, the tabs of a job, and the place for content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from markupsafe import Markup
from nicegui import ui

from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import render
from headgate.server.console.parts.theme import style
from headgate.server.console.parts.widgets import place_alert
from headgate.server.context import get_context
from headgate.server.signed_in import current_access

# Elements that are plain HTML; scripts make the others.
_PLAIN = frozenset(
    {"article", "details", "div", "figure", "header", "main", "nav", "section", "span", "summary"}
)
_ELEMENT = Markup('<{tag} class="{look}">{content}</{tag}>')


@contextmanager
def page(title: str, *, job: str | None = None, tab: str = "overview") -> Iterator[ui.element]:
    """Open a page: its frame is built, and what is built inside is its content.

    Args:
        title: The page's heading.
        job: The job whose tabs are shown.
        tab: The tab of this page: overview, checkpoints, state, outputs or processes.
    """
    words = [title] if job is None or tab == "overview" else [title, job]
    ui.page_title(" · ".join([*words, "Headgate"]))
    if tab != "overview":
        ui.add_head_html(style("pages"))
    settings = get_context().settings
    access = current_access() if settings.tokens else None
    with ui.element("header").classes("hg-header") as header:
        Live(render("header", home=settings.home, access=access)).style("display: contents")
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
    # The page as plain HTML until the browser has built the live one: `headgate.apply()` removes
    # it. As a plain string, since what NiceGUI adds to `Markup` would be escaped.
    parts = [_early(header), _early(main)]
    ui.add_body_html(str(render("early_page", parts=parts)))


def _early(part: ui.element) -> Markup:
    if not part.visible:
        return Markup()
    look = " ".join(part.classes)
    if isinstance(part, Live):
        return _ELEMENT.format(tag=part.kind, look=look, content=part.markup)
    if part.tag not in _PLAIN:
        return Markup()
    content = Markup().join(_early(child) for child in part.default_slot.children)
    return _ELEMENT.format(tag=part.tag, look=look, content=content)
