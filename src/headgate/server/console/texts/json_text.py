"""JSON values as people read them, and what differs between two of them; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.server.console.parts.markup import Html, element, join

# What is shown of one value; more than this is not read on a page.
MOST = 64 * 1024
_NARROW = 72


def write_json(value: Any) -> str:
    """Return a value as JSON on several lines; text outside ASCII stays as it is."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def write_line(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


def pretty(text: str) -> str:
    """Return JSON text on several lines; what is no JSON stays as it is."""
    try:
        return write_json(json.loads(text))
    except ValueError:
        return text


def cut(text: str, most: int) -> str:
    """Return text of at most so many characters; what was cut ends with three dots."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_json(value: Any) -> Html:
    """Return a value as markup: names, text, numbers and words told apart."""
    told = write_json(value)
    if len(told) > MOST:
        rest = f"… {len(told) - MOST:,} more characters"
        return element("pre", told[:MOST], "\n", element("em", rest), class_="hg-json")
    return element("pre", _value(value, 0), class_="hg-json")


def show_differences(differences: Mapping[str, Sequence[Any]]) -> Html:
    """Return what changed as markup: a line for each field, the old value and the new one."""
    return element(
        "ul",
        *(_difference(name, *pair) for name, pair in differences.items()),
        class_="hg-differences",
    )


def _difference(name: str, old: Any, new: Any) -> Html:
    return element(
        "li",
        element("span", name or "value", class_="hg-field"),
        _side("del", "was", old),
        element("span", "→", class_="hg-arrow", aria_hidden="true"),
        _side("ins", "is", new),
        data_key=name,
    )


def _side(tag: str, says: str, value: Any) -> Html:
    told = "nothing" if value is None else cut(write_line(value), 400)
    return element(tag, element("span", f"{says} ", class_="hg-unseen"), told)


def _value(value: Any, depth: int) -> Html:
    pad, inner = "  " * depth, "  " * (depth + 1)
    match value:
        case {**members} if members:
            lines = [
                join(inner, element("b", json.dumps(str(name), ensure_ascii=False)), ": ", told)
                for name, each in members.items()
                for told in (_value(each, depth + 1),)
            ]
            return join("{\n", *_with_commas(lines), "\n", pad, "}")
        case [*items] if items:
            flat = write_line(items)
            if len(flat) <= _NARROW and not any(isinstance(each, dict | list) for each in items):
                told = [_value(each, 0) for each in items]
                return join("[", *_between(told, ", "), "]")
            lines = [join(inner, _value(each, depth + 1)) for each in items]
            return join("[\n", *_with_commas(lines), "\n", pad, "]")
        case str():
            return element("span", json.dumps(value, ensure_ascii=False), class_="hg-string")
        case None | bool():
            return element("span", json.dumps(value), class_="hg-word")
    return element("span", json.dumps(value, ensure_ascii=False, default=str), class_="hg-digits")


def _with_commas(lines: Sequence[Html]) -> list[Html]:
    return _between(lines, ",\n")


def _between(parts: Sequence[Html], mark: str) -> list[Html]:
    told: list[Html] = []
    for each in parts:
        if told:
            told.append(Html(mark))
        told.append(each)
    return told
