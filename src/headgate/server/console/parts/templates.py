"""HTML from Jinja2 templates, which escape every text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from headgate.server.console.parts import formats
from headgate.server.console.parts.theme import ICON, head, tone_of

# Between two tags, where a browser would create a text node. A value never matches, since its angle
# brackets are escaped.
_LINE_BREAK = re.compile(r">\n\s*<")

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    # A name that is misspelled fails a test instead of showing nothing.
    undefined=StrictUndefined,
    auto_reload=False,
)
_environment.filters.update(
    age=formats.format_age,
    bytes=formats.format_bytes,
    count=formats.format_count,
    cut=formats.cut,
    duration=formats.format_duration,
    moment=formats.format_moment,
    ms=formats.format_ms,
    pretty=formats.pretty,
    rate=formats.format_rate,
    share=formats.format_share,
)
_environment.globals.update(job_path=formats.job_path, tone_of=tone_of, NONE=formats.NONE)


def render(template: str, /, **values: Any) -> Markup:
    """Return a template of the folder `templates` as markup.

    Args:
        values: What the template names; text is escaped, `Markup` is taken as it is.
    """
    html = _environment.get_template(f"{template}.html").render(values)
    return Markup(_LINE_BREAK.sub("><", html.strip()))


def note(text: str) -> Markup:
    """Return the sentence of an empty place."""
    return Markup('<p class="hg-empty">{}</p>').format(text)


def plain_page(template: str, **values: Any) -> str:
    """Return a whole document without the console's scripts; the template extends `plain_page`."""
    icon = f"data:image/svg+xml,{quote(ICON)}"
    return str(render(template, icon=icon, head=Markup(head()), **values))
