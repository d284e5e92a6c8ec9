"""The look of the console: its colours, style sheets and the tone of each state."""

from __future__ import annotations

from functools import cache
from pathlib import Path

# Colours of charts, in the order of their series; the style sheet has a light and a dark value.
SERIES = tuple(f"var(--hg-c{number})" for number in range(1, 7))
TEXT = "var(--hg-text)"
MUTED = "var(--hg-muted)"
LINE = "var(--hg-line)"
SURFACE = "var(--hg-surface)"
BAD = "var(--hg-bad)"

# Spelled out, since the browser measures the texts of charts with it.
FONT = 'system-ui, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif'

_FOLDER = Path(__file__).parents[1] / "static"

# The class of a state's badge.
_TONES = {
    "RUNNING": "good",
    "FINISHED": "done",
    "STOPPED": "idle",
    "CANCELED": "idle",
    "PAUSED": "held",
    "STARTING": "busy",
    "STOPPING": "busy",
    "CANCELING": "busy",
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
    """Return the head of every page: its script and its style."""
    script = (_FOLDER / "console.js").read_text(encoding="utf-8")
    return f"<script>{script}</script>\n{style('console')}"


@cache
def style(sheet: str) -> str:
    """Return a style sheet of the console as an element."""
    return f"<style>{(_FOLDER / sheet).with_suffix('.css').read_text(encoding='utf-8')}</style>"
