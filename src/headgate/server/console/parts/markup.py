"""HTML as values: text is escaped when it goes in, so that no caller can forget to."""

from __future__ import annotations

import html

# Elements that have no end tag.
_VOID = frozenset({"br", "hr", "input", "line", "link", "circle", "meta", "path", "rect"})


class Html(str):
    """Markup that is safe to show as it is."""

    __slots__ = ()


def element(name: str, /, *children: str | Html | None, **attributes: object) -> Html:
    """Return an element; children that are no Html are escaped.

    Args:
        attributes: `class_` is class, `data_act` is data-act. True writes the bare name; None and
            False leave the attribute out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str | Html | None) -> Html:
    """Return children one after the other, those that are no Html escaped; None is nothing."""
    return Html("".join(safe(each) for each in children if each is not None))


def safe(text: str | Html) -> Html:
    """Return text as markup: escaped, unless it is markup already."""
    return text if isinstance(text, Html) else Html(html.escape(text, quote=True))


def link(text: str | Html, to: str, **attributes: object) -> Html:
    """Return a link to a page of the console."""
    return element("a", text, href=to, **attributes)


def act(text: str | Html, action: str, value: str = "", **attributes: object) -> Html:
    """Return a button; `Live.on_act` is told its action and its value."""
    attributes = {"class_": "hg-act", **attributes}
    return element("button", text, type="button", data_act=action, data_value=value, **attributes)


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value), quote=True)}"'
