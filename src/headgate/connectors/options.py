"""What people write about topics on brokers: servers, options of clients, and patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from headgate.errors import HeadgateError

_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
# Besides letters and digits: what stands for itself between `?`, `&` and `=`.
_PLAIN = "${}:/,.-_~*@!;()"


def parse_servers(text: str, *, port: int, fault: Callable[[str], HeadgateError]) -> list[str]:
    """Return servers, which are separated by commas, each with its port.

    Args:
        text: What was written.
        port: Of a server that names none.
        fault: Makes the error of what was found, in which a password never is.
    """
    if not isinstance(text, str) or "@" in text:
        raise fault("a name and a password stand before the servers, where none may")
    return [_server(each.strip(), port, fault) for each in text.split(",")]


def option_text(
    name: str, value: object, *, fault: Callable[[str, str, str], HeadgateError], example: str
) -> str:
    """Return an option's value as text.

    Args:
        name: The option's name, which is checked too.
        value: Text, a number, or true and false.
        fault: Makes the error of a name, what was found, and a hint.
        example: A name of such an option.
    """
    if not _NAME.fullmatch(name):
        raise fault(name, "it is no name of an option", f"use names such as {example}")
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            raise fault(name, f"its value is a {type(value).__name__}", "use text")


def parse_query(
    query: str, *, fault: Callable[[str, str, str], HeadgateError]
) -> Iterator[tuple[str, str]]:
    """Yield the names and values that follow the question mark of a log.

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
    """Return what `parse_query` reads, with the question mark; empty where there is nothing."""
    query = "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in pairs)
    return f"?{query}" if query else ""


def check_pattern(name: str, pattern: str | None, *, positions: str | None) -> None:
    """Refuse a pattern of topics that cannot be one.

    Args:
        name: The topic's name in the flow.
        positions: What its start names, such as offsets, if that makes sense for one topic alone.

    Raises:
        HeadgateError: BAD_TOPIC.
    """
    if pattern is None:
        return
    try:
        re.compile(pattern)
        found = "" if pattern else "it is empty"
    except re.error as error:
        found = f"it is no regular expression ({error})"
    if not found and positions is not None:
        found = f"{positions} are of one topic, and it may match many"
    if found:
        raise HeadgateError(
            "BAD_TOPIC",
            f"cannot read topics by pattern {pattern!r} as {name!r}: {found}",
            hint=f"use pattern='{name}-.*', and a time to start from other than the earliest",
        )


def _server(text: str, default_port: int, fault: Callable[[str], HeadgateError]) -> str:
    match = _SERVER.fullmatch(text)
    if match is None:
        raise fault(f"{text!r} is no host and port" if text else "one of them is empty")
    port = default_port if match["port"] is None else int(match["port"])
    if not 0 < port < 65536:
        raise fault(f"{port} is no port, from 1 to 65535")
    return f"{match['host']}:{port}"


def anchored_path(path: str | None) -> str | None:
    """Return the absolute path of a file, to be read from any folder."""
    return None if path is None else str(Path(path).absolute())
