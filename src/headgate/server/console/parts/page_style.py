"""The style sheet of the pages about a job's past, its state and its outputs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from nicegui import ui


def add_look() -> None:
    """Put the style sheet into the page that is being built."""
    ui.add_head_html(_style())


@cache
def _style() -> str:
    sheet = (Path(__file__).parents[1] / "static" / "pages.css").read_text(encoding="utf-8")
    return f"<style>{sheet}</style>"
