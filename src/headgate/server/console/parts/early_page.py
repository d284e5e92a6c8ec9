"""A page as plain HTML, for the time until the browser has made the live one."""

from __future__ import annotations

from markupsafe import Markup
from nicegui import ui

from headgate.server.console.parts.live import Live
from headgate.server.console.parts.templates import render

# Elements that stand for nothing but themselves; what is made by scripts comes later.
_PLAIN = frozenset(
    {"article", "details", "div", "figure", "header", "main", "nav", "section", "span", "summary"}
)
_ELEMENT = Markup('<{tag} class="{look}">{content}</{tag}>')


def early_page(parts: list[ui.element]) -> Markup:
    """Return what is known of some elements already, as they will look.

    It cannot be clicked or focused and is not read out. `headgate.apply()` takes it away before
    the live page stands.
    """
    return render("early_page", parts=[_plain(part) for part in parts])


def _plain(part: ui.element) -> Markup:
    if not part.visible:
        return Markup()
    look = " ".join(part.classes)
    if isinstance(part, Live):
        return _ELEMENT.format(tag=part.kind, look=look, content=part.markup)
    if part.tag not in _PLAIN:
        return Markup()
    content = Markup().join(_plain(child) for child in part.default_slot.children)
    return _ELEMENT.format(tag=part.tag, look=look, content=content)
