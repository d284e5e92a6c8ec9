"""A piece of the page that is HTML, and is changed in place when new HTML comes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Self

from nicegui import ui
from nicegui.events import GenericEventArguments

from headgate.server.console.parts.markup import Html

OnAct = Callable[[str, str], Awaitable[None] | None]


class Live(ui.element, component="../static/live.js"):
    """Shows markup; `show` replaces it, and the browser touches only what differs.

    One element on the server however large the markup is, and what does not change costs nothing:
    the way to show what is looked at again and again. Focus and selection stay where they are.
    Rows and the like should carry a `data-key`, by which they are found again when they move.
    """

    def __init__(self, markup: Html | None = None, *, tag: str = "div") -> None:
        super().__init__()
        self._props["tag"] = tag
        self._props["html"] = str(markup or "")

    @property
    def kind(self) -> str:
        """The element that holds the markup."""
        return str(self._props["tag"])

    @property
    def markup(self) -> Html:
        """What is shown."""
        return Html(self._props["html"])

    def show(self, markup: Html) -> None:
        """Show other markup; the same markup again is not sent."""
        if self._props["html"] != markup:
            self._props["html"] = str(markup)

    def on_act(self, handler: OnAct) -> Self:
        """Call `handler(action, value)` when an element with `data-act` is clicked or entered."""

        async def told(event: GenericEventArguments) -> None:
            said: dict[str, Any] = event.args
            result = handler(str(said.get("action", "")), str(said.get("value", "")))
            if inspect.isawaitable(result):
                await result

        self.on("act", told)
        return self
