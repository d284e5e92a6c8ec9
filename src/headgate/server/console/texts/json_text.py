"""JSON values as people read them, and what differs between two of them; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from headgate.server.console.parts.formats import cut, write_json, write_line
from headgate.server.console.parts.templates import render

# What is shown of one value; more than this is not read on a page.
MOST = 64 * 1024
_NARROW = 72
_LONGEST_SIDE = 400

_NAME = Markup("<b>{}</b>")
_STRING = Markup('<span class="hg-string">{}</span>')
_WORD = Markup('<span class="hg-word">{}</span>')
_DIGITS = Markup('<span class="hg-digits">{}</span>')


def show_json(value: Any) -> Markup:
    """Return a value as markup: names, text, numbers and words told apart."""
    text = write_json(value)
    if len(text) > MOST:
        rest = f"… {len(text) - MOST:,} more characters"
        return Markup('<pre class="hg-json">{}\n<em>{}</em></pre>').format(text[:MOST], rest)
    return Markup('<pre class="hg-json">{}</pre>').format(_value(value, 0))


def show_differences(differences: Mapping[str, Sequence[Any]]) -> Markup:
    """Return what changed as markup: a line for each field, the old value and the new one."""
    lines = [(name, _side(old), _side(new)) for name, (old, new) in differences.items()]
    return render("differences", differences=lines)


def _side(value: Any) -> str:
    return "nothing" if value is None else cut(write_line(value), _LONGEST_SIDE)


def _value(value: Any, depth: int) -> Markup:
    pad, inner = Markup("  " * depth), Markup("  " * (depth + 1))
    match value:
        case {**members} if members:
            lines = [
                inner + _NAME.format(write_line(str(name))) + ": " + _value(member, depth + 1)
                for name, member in members.items()
            ]
            return Markup("{\n") + Markup(",\n").join(lines) + "\n" + pad + "}"
        case [*items] if items:
            flat = write_line(items)
            if len(flat) <= _NARROW and not any(isinstance(item, dict | list) for item in items):
                return Markup("[") + Markup(", ").join(_value(item, 0) for item in items) + "]"
            lines = [inner + _value(item, depth + 1) for item in items]
            return Markup("[\n") + Markup(",\n").join(lines) + "\n" + pad + "]"
        case str():
            return _STRING.format(write_line(value))
        case None | bool():
            return _WORD.format(write_line(value))
    return _DIGITS.format(write_line(value))
