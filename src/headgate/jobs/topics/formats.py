"""The formats there are, by what their classes say; and one with options, from texts."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from headgate.errors import HeadgateError
from headgate.flow.formats.format import KINDS, Format, as_format
from headgate.flow.names import did_you_mean

_SPACE = re.compile(r"\s+")
_OPTION = re.compile(r"^    (\w+): ")


@dataclass(frozen=True, slots=True)
class FormatOption:
    """An option of a format.

    Attributes:
        default: The default as text; empty for none.
    """

    name: str
    default: str
    description: str


@dataclass(frozen=True, slots=True)
class FormatView:
    """A format of records.

    Attributes:
        name: The name that stands for the format with its defaults.
        reads: Whether a source can have it; likewise `writes` for an output.
        on_brokers: How a record is stored as a message; `embedded` as a line of an embedded topic.
    """

    name: str
    description: str
    reads: bool
    writes: bool
    on_brokers: str
    embedded: str
    options: tuple[FormatOption, ...]


def list_formats() -> tuple[FormatView, ...]:
    """Return the formats that a flow can name."""
    return tuple(_view(name, kind) for name, kind in KINDS.items())


def parse_format(name: str, options: Iterable[str] = ()) -> Format:
    r"""Return a format from the texts of a command line.

    Args:
        options: `NAME=VALUE`; lists are separated by commas, and `\t` is a tab.

    Raises:
        HeadgateError: BAD_FORMAT.
    """
    what = "cannot read a topic"
    default = as_format(name, what=what)
    kind = KINDS[name]
    known = {field.name: field for field in fields(kind)}
    given: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in known or not equals:
            raise HeadgateError(
                "BAD_FORMAT",
                f"{what}: {option!r} is not an option of format {name!r}; it has "
                f"{', '.join(known) or 'none'}",
                hint=did_you_mean(key, known) if known else "headgate formats",
            )
        given[key] = _parse(typing.get_type_hints(kind)[key], value)
    return kind(**given) if given else default


def _parse(kind: Any, text: str) -> Any:
    if typing.get_origin(kind) is tuple:
        return tuple(part.strip() for part in text.split(","))
    if kind is bool:
        return text == "true"
    if kind is int:
        return int(text)
    return text.replace("\\t", "\t")


def _view(name: str, kind: type[Any]) -> FormatView:
    lines = (kind.__doc__ or "").splitlines()
    help_of = _read_help(lines)
    return FormatView(
        name,
        lines[0] if lines else "",
        getattr(kind, "can_read", True),
        getattr(kind, "can_write", True),
        "bytes" if kind.is_binary else "text",
        "base64" if kind.is_binary else "text",
        tuple(
            FormatOption(field.name, _default(field), help_of.get(field.name, ""))
            for field in fields(kind)
        ),
    )


def _read_help(lines: Iterable[str]) -> Mapping[str, str]:
    """Return the descriptions of attributes from the docstring of a class."""
    texts: dict[str, str] = {}
    name = ""
    for line in lines:
        inside = line.removeprefix("    ")
        if found := _OPTION.match(inside):
            name = found[1]
            texts[name] = inside[found.end() :]
        elif name and inside.startswith("        "):
            texts[name] += f" {inside.strip()}"
        else:
            name = ""
    return {key: _SPACE.sub(" ", text) for key, text in texts.items()}


def _default(field: Field[Any]) -> str:
    value = field.default
    if value is MISSING or value is None or value == ():
        return ""
    return repr(value) if isinstance(value, str) else str(value)
