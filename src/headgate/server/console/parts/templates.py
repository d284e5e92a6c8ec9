"""HTML from Jinja2 templates: text is escaped when it goes in, so that no page can forget to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from headgate.server.console.parts import formats
from headgate.server.console.parts.theme import tone_of

# Between two tags; a browser would make a node of every one. No text of a value matches, since its
# angle brackets are escaped.
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
    """Return a sentence that stands where there is nothing to show."""
    return Markup('<p class="hg-empty">{}</p>').format(text)
