"""A page as plain HTML, for the time until the browser has made the live one."""

from __future__ import annotations

from nicegui import ui

from headgate.server.console.parts.live import Live
from headgate.server.console.parts.markup import Html, element, join

# Elements that stand for nothing but themselves; what is made by scripts comes later.
_PLAIN = frozenset(
    {"article", "details", "div", "figure", "header", "main", "nav", "section", "span", "summary"}
)


def early_page(parts: list[ui.element]) -> Html:
    """Return what is known of some elements already, as they will look.

    It cannot be clicked or focused and is not read out. `headgate.apply()` takes it away before
    the live page stands.
    """
    return element(
        "div", *(_plain(each) for each in parts), class_="hg-early", inert=True, aria_hidden="true"
    )


def _plain(part: ui.element) -> Html | None:
    if not part.visible:
        return None
    look = {"class_": " ".join(part.classes) or None}
    if isinstance(part, Live):
        return element(part.kind, part.markup, **look)
    if part.tag not in _PLAIN:
        return None
    return element(part.tag, join(*(_plain(each) for each in part.default_slot.children)), **look)
