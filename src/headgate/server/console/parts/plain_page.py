"""Pages that are plain HTML: where nothing of the console's scripts is served, or needed."""

from __future__ import annotations

from urllib.parse import quote

from headgate.server.console.parts.markup import Html, element, join
from headgate.server.console.parts.theme import ICON, head


def plain_page(title: str, body: Html) -> str:
    """Return a whole document in the console's look."""
    meta = join(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{title} · Headgate"),
        element("link", rel="icon", href=f"data:image/svg+xml,{quote(ICON)}"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{meta}{head()}</head><body>{body}</body></html>'


def not_found_page(path: str) -> str:
    """Return the page for an address that is none."""
    body = element(
        "main",
        element("h1", "Not here"),
        element("p", "There is no page at ", element("code", path), "."),
        element("p", element("a", "All jobs", href="/")),
        class_="hg-panel hg-login",
    )
    return plain_page("Not here", body)
