"""The look of the console: one style sheet, and the script that applies light or dark early."""

from __future__ import annotations

from functools import cache
from pathlib import Path

# Colours of charts, in the order they are used; the style sheet gives each a light and a dark one.
SERIES = tuple(f"var(--hg-c{number})" for number in range(1, 7))
TEXT = "var(--hg-text)"
MUTED = "var(--hg-muted)"
LINE = "var(--hg-line)"
SURFACE = "var(--hg-surface)"
GOOD = "var(--hg-good)"
WARN = "var(--hg-warn)"
BAD = "var(--hg-bad)"

# A browser measures texts of charts by it, so that it has to be spelled out.
FONT = 'system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif'

_FOLDER = Path(__file__).parents[1] / "static"

# What a state is at a glance: the class of its badge.
_TONES = {
    "RUNNING": "good",
    "FINISHED": "done",
    "STOPPED": "idle",
    "CANCELED": "idle",
    "PAUSED": "held",
    "STARTING": "busy",
    "STOPPING": "busy",
    "CANCELLING": "busy",
    "RESCALING": "busy",
    "RESTARTING": "warn",
    "FAILED": "bad",
    "DEAD": "bad",
    "UNREADABLE": "bad",
    "DONE": "good",
    "COMPLETED": "good",
}


def tone_of(state: str) -> str:
    """Return the tone of a state: good, busy, held, warn, bad, idle or done."""
    return _TONES.get(state.upper(), "idle")


ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20" fill="none" stroke="#3b82d6" '
    'stroke-width="2"><path d="M3 2v16M17 2v16M3 6h14M10 6v7"/>'
    '<path d="M6 13h8v3H6z" fill="#3b82d6"/></svg>'
)


@cache
def head() -> str:
    """Return what goes into the head of every page: style and script, nothing from elsewhere."""
    style = (_FOLDER / "console.css").read_text(encoding="utf-8")
    script = (_FOLDER / "console.js").read_text(encoding="utf-8")
    return f"<script>{script}</script>\n<style>{style}</style>"
