"""Parsing of servers, client options and patterns of topics on brokers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from headgate.errors import HeadgateError

_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
# Characters that need no escaping between `?`, `&` and `=`.
_PLAIN = "${}:/,.-_~*@!;()"


def parse_servers(text: str, *, port: int, fault: Callable[[str], HeadgateError]) -> list[str]:
    """Return comma-separated servers, each with its port.

    Args:
        text: The user's text.
        port: The default port.
        fault: Creates the error from a problem, which never quotes a password.
    """
    if not isinstance(text, str) or "@" in text:
        raise fault("a user name and password must not precede the servers")
    return [_server(server.strip(), port, fault) for server in text.split(",")]


def option_text(
    name: str, value: object, *, fault: Callable[[str, str, str], HeadgateError], example: str
) -> str:
    """Return an option's value as text.

    Args:
        name: The option's name, which is checked too.
        value: Text, a number, or true and false.
        fault: Creates the error from a name, a problem and a hint.
        example: The name of such an option.
    """
    if not _NAME.fullmatch(name):
        raise fault(name, "it is not an option name", f"use names such as {example}")
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            raise fault(
                name, f"its value must be text or a number, got {type(value).__name__}", "use text"
            )


def parse_query(
    query: str, *, fault: Callable[[str, str, str], HeadgateError]
) -> Iterator[tuple[str, str]]:
    """Yield the names and values after the question mark of a log.

    Args:
        query: `name=value&name=value`; may be empty.
        fault: Makes the error of a name, what was found, and a hint.
    """
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise fault(unquote(name), "it has no value", "write name=value&name=value")
        yield unquote(name), unquote(value)


def query_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the text that `parse_query` reads, with the question mark; empty without pairs."""
    query = "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in pairs)
    return f"?{query}" if query else ""


def check_pattern(name: str, pattern: str | None, *, positions: str | None) -> None:
    """Refuse a topic pattern that is not valid.

    Args:
        name: The topic's name in the flow.
        positions: The positions in its start, such as offsets, if they belong to a single topic.

    Raises:
        HeadgateError: BAD_TOPIC.
    """
    if pattern is None:
        return
    try:
        re.compile(pattern)
        problem = "" if pattern else "it is empty"
    except re.error as error:
        problem = f"it is not a regular expression ({error})"
    if not problem and positions is not None:
        problem = f"{positions} belong to one topic, and the pattern may match many"
    if problem:
        raise HeadgateError(
            "BAD_TOPIC",
            f"cannot read topics by pattern {pattern!r} as {name!r}: {problem}",
            hint=f"use pattern='{name}-.*', and a time as the start",
        )


def _server(text: str, default_port: int, fault: Callable[[str], HeadgateError]) -> str:
    match = _SERVER.fullmatch(text)
    if match is None:
        raise fault(f"{text!r} is not a host and port" if text else "one of them is empty")
    port = default_port if match["port"] is None else int(match["port"])
    if not 0 < port < 65536:
        raise fault(f"{port} is not a port from 1 to 65535")
    return f"{match['host']}:{port}"


def anchored_path(path: str | None) -> str | None:
    """Return the absolute path of a file."""
    return None if path is None else str(Path(path).absolute())
