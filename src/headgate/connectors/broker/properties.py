"""Java properties files with the options of broker clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headgate.errors import HeadgateError

_COMMENT = re.compile(r"\s*[#!]")
_PAIR = re.compile(r"((?:\\.|[^\\:=\s])+)\s*[:=]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def read_properties(path: Path, *, broker: str) -> dict[str, str]:
    """Return the options of a client's properties file.

    Args:
        broker: The broker's name for the message, such as Kafka.

    Raises:
        HeadgateError: CLIENT_CONFIG_UNREADABLE.
    """
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise HeadgateError(
            "CLIENT_CONFIG_UNREADABLE",
            f"cannot read the options of {broker}'s clients from {path}: {problem}",
            hint=f"ls -l {path}",
        ) from error


def parse_properties(text: str) -> dict[str, str]:
    """Return names and values as Java reads them; the last of equal names wins."""
    options = {}
    for line in _lines(text):
        match = _PAIR.fullmatch(line)
        if match:
            options[_plain(match[1])] = _plain(match[2])
    return options


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that are not blank, with continued lines joined."""
    begun = ""
    for line in text.splitlines():
        if not begun and (not line.strip() or _COMMENT.match(line)):
            continue
        joined = begun + line.lstrip()
        slashes = len(joined) - len(joined.rstrip("\\"))
        if slashes % 2:
            begun = joined[:-1]
            continue
        yield joined
        begun = ""
    if begun:
        yield begun


def _plain(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _CONTROLS.get(match[2], match[2])

    return _ESCAPE.sub(plain, text)
