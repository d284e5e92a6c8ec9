"""Parsing of servers and client options of brokers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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


def option_text(name: str, value: object, *, broker: str, example: str) -> str:
    """Return an option's value as text.

    Args:
        name: The option's name, which is checked too.
        value: Text, a number, or true and false.
        broker: The broker's name for the message, such as Kafka.
        example: The name of such an option.
    """
    if not _NAME.fullmatch(name):
        problem, hint = "it is not an option name", f"use names such as {example}"
        raise bad_client_option(broker, name, problem, hint)
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            problem = f"its value must be text or a number, got {type(value).__name__}"
            raise bad_client_option(broker, name, problem, "use text")


def bad_client_option(broker: str, name: str, problem: str, hint: str) -> HeadgateError:
    """Return the error for an option that is not supported; it never quotes the value."""
    return HeadgateError(
        "BAD_CLIENT_OPTION",
        f"cannot use option {name!r} of {broker}'s clients: {problem}",
        hint=hint,
    )


def parse_query(query: str, *, broker: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values after the question mark of a log.

    Args:
        query: `name=value&name=value`; may be empty.
        broker: The broker's name for the message.
    """
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals:
            hint = "write name=value&name=value"
            raise bad_client_option(broker, unquote(name), "it has no value", hint)
        yield unquote(name), unquote(value)


def query_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the text that `parse_query` reads, with the question mark; empty without pairs."""
    query = "&".join(f"{name}={quote(value, safe=_PLAIN)}" for name, value in pairs)
    return f"?{query}" if query else ""


def _server(text: str, default_port: int, fault: Callable[[str], HeadgateError]) -> str:
    match = _SERVER.fullmatch(text)
    if match is None:
        raise fault(f"{text!r} is not a host and port" if text else "one of them is empty")
    port = default_port if match["port"] is None else int(match["port"])
    if not 0 < port < 65536:
        raise fault(f"{port} is not a port from 1 to 65535")
    return f"{match['host']}:{port}"
