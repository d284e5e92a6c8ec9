"""The value of `sasl.jaas.config`: how a Java client logs in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINE = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<rest>.*?);?\s*",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(r"""([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")
_SECRET = re.compile(r"password|secret|token", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Login:
    """A login module and its options.

    Attributes:
        module: The class name, without its package.
        options: By name, without their quotes.
    """

    module: str
    options: Mapping[str, str]


def parse_jaas(text: str) -> Login | None:
    """Return the login that a line describes, or None if it is not such a line."""
    line = _LINE.fullmatch(text)
    if line is None:
        return None
    options = {
        match[1]: _ESCAPE.sub(r"\1", next((group for group in match.groups()[1:] if group), ""))
        for match in _OPTION.finditer(line["rest"])
    }
    return Login(line["module"].rpartition(".")[2], options)


def find_secrets(text: str) -> list[str] | None:
    """Return the secrets in a line, or None if it is not such a line."""
    login = parse_jaas(text)
    if login is None:
        return None
    return [value for name, value in login.options.items() if _SECRET.search(name)]
