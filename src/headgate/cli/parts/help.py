"""Help texts: written like docstrings, laid out for a terminal.

Lines of a paragraph are joined, for any width. Lines indented by two spaces are examples: they are
unchanged and close together; the text after ` # ` is a remark.
"""

from __future__ import annotations

import inspect
from typing import Any

import typer

_HEADING = "[bold]Examples[/bold]"
_INDENT = "  "
_EXAMPLE = "[cyan]"


def lay_out(app: typer.Typer) -> None:
    """Lay out the help of every command of an app, including its groups."""
    for command in app.registered_commands:
        _lay_out_one(command)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            if group.typer_instance.registered_callback is not None:
                _lay_out_one(group.typer_instance.registered_callback)
            lay_out(group.typer_instance)


def flowing(text: str) -> str:
    """Return a help text with its paragraphs on one line each and its examples marked."""
    shown = ""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        is_example = paragraph.startswith(_INDENT)
        block = _examples(paragraph) if is_example else " ".join(paragraph.split())
        is_close = is_example and shown.rpartition("\n")[2].startswith((_EXAMPLE, _HEADING))
        shown += ("\n" if is_close else "\n\n") + block
    return shown.lstrip("\n")


def _lay_out_one(info: Any) -> None:
    # Without a text, typer has a placeholder, and the docstring counts.
    text = info.help if isinstance(info.help, str) else inspect.getdoc(info.callback)
    if text:
        info.help = flowing(text)


def _examples(paragraph: str) -> str:
    return "\n".join(_example(line) for line in paragraph.splitlines())


def _example(line: str) -> str:
    command, hash_sign, remark = line.partition(" # ")
    # The indent is inside the markup, since typer removes a margin that all lines have.
    return f"{_EXAMPLE}{command.rstrip()}[/cyan]{hash_sign and ' ' + hash_sign}{remark}"
