"""Pages that are plain HTML: where nothing of the console's scripts is served, or needed."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from headgate.server.console.parts.templates import render
from headgate.server.console.parts.theme import ICON, head


def plain_page(template: str, **values: Any) -> str:
    """Return a whole document in the console's look; the template extends `plain_page`."""
    icon = f"data:image/svg+xml,{quote(ICON)}"
    return str(render(template, icon=icon, head=Markup(head()), **values))
