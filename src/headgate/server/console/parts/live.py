"""A piece of the page that is HTML, and is changed in place when new HTML comes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Self

from markupsafe import Markup, escape
from nicegui import ui
from nicegui.events import GenericEventArguments

from headgate.server.console.parts.templates import render

OnAct = Callable[[str, str], Awaitable[None] | None]


class Live(ui.element, component="../static/live.js"):
    """Shows markup; `show` replaces it, and Vue changes only what differs in the browser.

    One element on the server however large the markup is, and what does not change costs nothing:
    the way to show what is looked at again and again. Focus and selection stay where they are.
    Rows and the like should carry a `data-key`, by which they are found again when they move.
    Text that is not `Markup` is escaped.
    """

    def __init__(self, content: str = "", *, tag: str = "div") -> None:
        super().__init__()
        self._props["tag"] = tag
        self._props["html"] = str(escape(content))

    @property
    def kind(self) -> str:
        """The element that holds the markup."""
        return str(self._props["tag"])

    @property
    def markup(self) -> Markup:
        """What is shown."""
        return Markup(self._props["html"])

    def show(self, content: str) -> None:
        """Show other text or markup; the same again is not sent."""
        html = str(escape(content))
        if self._props["html"] != html:
            self._props["html"] = html

    def show_template(self, template: str, **values: Any) -> None:
        """Show a template, filled with values."""
        self.show(render(template, **values))

    def on_act(self, handler: OnAct) -> Self:
        """Call `handler(action, value)` when an element with `data-act` is clicked or entered."""

        async def acted(event: GenericEventArguments) -> None:
            message: dict[str, Any] = event.args
            result = handler(str(message.get("action", "")), str(message.get("value", "")))
            if inspect.isawaitable(result):
                await result

        self.on("act", acted)
        return self
