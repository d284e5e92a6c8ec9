"""The frame of every page: header, breadcrumbs, the tabs of a job, and the place for content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

from nicegui import ui

from headgate.server.console.parts.early_page import early_page
from headgate.server.console.parts.live import Live
from headgate.server.console.parts.markup import Html, element, join, link
from headgate.server.console.parts.widgets import place_alert
from headgate.server.context import get_context
from headgate.server.security.access import Access
from headgate.server.signed_in import current_access

_TABS = (("overview", "Overview"), ("checkpoints", "Checkpoints"), ("state", "State"),
         ("outputs", "Outputs"))  # fmt: skip
# On a machine that is busy, a page that comes late is better than none.
_LONGEST_BUILD_S = 30.0
_THEMES = (("light", "Light"), ("dark", "Dark"), ("auto", "Auto"))
_MARK = Html(
    '<svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" fill="none" '
    'stroke="currentColor" stroke-width="2"><path d="M3 2v16M17 2v16M3 6h14M10 6v7"/>'
    '<path d="M6 13h8v3H6z" fill="currentColor"/></svg>'
)


def serve(path: str, build: Callable[..., Awaitable[None]]) -> None:
    """Serve a page under a path; `build` makes it, anew for each browser."""
    ui.page(path, response_timeout=_LONGEST_BUILD_S)(build)


@contextmanager
def page(title: str, *, job: str | None = None, tab: str | None = None) -> Iterator[ui.element]:
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
            Live(_crumbs(job, tab), tag="nav").classes("hg-crumbs").props(
                'aria-label="Breadcrumbs"'
            )
        with ui.element("div").classes("hg-title"):
            Live(element("h1", title))
        if job is not None:
            Live(_tabs(job, tab), tag="nav").classes("hg-tabs").props('aria-label="Job"')
        place_alert()
        yield main
    ui.add_body_html(early_page([header, main]))


def job_path(job: str, tab: str = "overview") -> str:
    """Return where a page of a job is."""
    return f"/jobs/{quote(job, safe='')}" + ("" if tab == "overview" else f"/{tab}")


def _header() -> Html:
    access = current_access()
    home = str(get_context().settings.home)
    return join(
        link(join(_MARK, "Headgate"), "/", class_="hg-brand"),
        element("span", element("bdi", home), class_="hg-home", title=f"Home: {home}"),
        element("span", class_="hg-space"),
        _who(access),
        _themes(),
    )


def _themes() -> Html:
    choices = (
        element("button", label, type="button", data_theme_choice=name, aria_pressed="false")
        for name, label in _THEMES
    )
    return element("div", *choices, class_="hg-themes", role="group", aria_label="Theme")


def _who(access: Access) -> Html | None:
    if not get_context().settings.tokens:
        return None
    leave = element(
        "form",
        element("button", "Log out", type="submit", class_="hg-act"),
        method="post",
        action="/logout",
    )
    return element("span", f"{access.who} ({access.role})", leave, class_="hg-who")


def _crumbs(job: str, tab: str | None) -> Html:
    here = dict(_TABS).get(tab or "", "")
    trail = [link("Jobs", "/")]
    if tab in (None, "overview"):
        trail.append(element("span", job, aria_current="page"))
    else:
        trail += [link(job, job_path(job)), element("span", here, aria_current="page")]
    return element("ol", *(element("li", each) for each in trail))


def _tabs(job: str, tab: str | None) -> Html:
    links = (
        link(label, job_path(job, name), aria_current="page" if name == tab else None)
        for name, label in _TABS
    )
    return element("ul", *(element("li", each) for each in links))
