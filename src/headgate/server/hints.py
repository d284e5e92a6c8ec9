"""Hints of errors as REST calls: the one table of commands and the requests that do the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.errors import HeadgateError


@dataclass(frozen=True, slots=True)
class Call:
    """The request that does the same as a command.

    Attributes:
        path: With `{job}` for the command's first argument.
        argument: The field of the body for that argument, if the path does not have it.
        options: The field of the body, or the parameter of the query, of each option; with a value
            if the option has none of its own.
        words: Further arguments of the command that mean this very request.
    """

    method: str
    path: str
    argument: str = ""
    options: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    words: tuple[str, ...] = ()


_VALUE = object()
_LIST = object()
# An option of several commands, and in hints that name no command.
OPTIONS: Mapping[str, tuple[str, Any]] = {
    "--fresh": ("fresh", True),
    "--allow-repeats": ("allow_repeats", True),
    "--open-batch": ("open_batch", _VALUE),
    "--from": ("restore_from", _VALUE),
    "--drop-state": ("drop_state", _LIST),
    "--dry-run": ("dry_run", True),
}
_START = {name: OPTIONS[name] for name in ("--allow-repeats", "--open-batch")}
_LOGS = {
    **{f"--{log}": ("log", log) for log in ("driver", "supervisor", "events")},
    "--executor": ("executor", _VALUE),
}

CALLS: Mapping[str, Call] = {
    "jobs": Call("GET", "/v1/jobs"),
    "run": Call(
        "POST",
        "/v1/jobs",
        "flow",
        {**_START, **{name: OPTIONS[name] for name in ("--fresh", "--from")}},
    ),
    "show": Call("GET", "/v1/jobs/{job}"),
    "processes": Call("GET", "/v1/jobs/{job}/processes"),
    "events": Call("GET", "/v1/jobs/{job}/events"),
    "exceptions": Call("GET", "/v1/jobs/{job}/exceptions"),
    "logs": Call("GET", "/v1/jobs/{job}/logs", options=_LOGS),
    "start": Call("POST", "/v1/jobs/{job}/start", options=_START),
    "restart": Call("POST", "/v1/jobs/{job}/restart", options=_START),
    "stop": Call(
        "POST",
        "/v1/jobs/{job}/stop",
        options={"--drain": ("drain", True), "--savepoint": ("savepoint", True)},
    ),
    "cancel": Call("POST", "/v1/jobs/{job}/cancel", options={"--dry-run": OPTIONS["--dry-run"]}),
    "delete": Call(
        "DELETE",
        "/v1/jobs/{job}",
        options={
            "--keep-savepoints": ("keep_savepoints", "true"),
            "--dry-run": ("dry_run", "true"),
        },
    ),
    "prune": Call(
        "POST",
        "/v1/jobs/{job}/prune",
        options={
            "--drop-checkpoints": ("drop_checkpoints", True),
            "--dry-run": OPTIONS["--dry-run"],
        },
    ),
    "pause": Call("POST", "/v1/jobs/{job}/pause"),
    "resume": Call("POST", "/v1/jobs/{job}/resume"),
    "savepoint": Call(
        "POST", "/v1/jobs/{job}/savepoints", options={"--portable": ("portable", True)}
    ),
    "restore": Call(
        "POST",
        "/v1/jobs/{job}/restore",
        options={
            "--from": ("from", _VALUE),
            "--at": ("at", _VALUE),
            "--drop-state": OPTIONS["--drop-state"],
            "--dry-run": OPTIONS["--dry-run"],
        },
    ),
    "checkpoints": Call("GET", "/v1/jobs/{job}/checkpoints"),
    "state": Call("GET", "/v1/jobs/{job}/state"),
    "dead-letters": Call("GET", "/v1/jobs/{job}/dead-letters", words=("list",)),
}

_COMMAND = re.compile(r"headgate (?P<verb>[a-z][a-z-]*)(?P<rest>(?: (?!or\b|then\b)[^\s,;]+)*)")
_OPTION = re.compile(rf"(?P<name>{'|'.join(map(re.escape, OPTIONS))})(?: (?P<value>[\w.-]+))?")


def describe_error(error: HeadgateError) -> dict[str, str]:
    """Return an error as the JSON of a REST answer.

    The hint names requests. A command line prints `command` instead, if there is one, and takes its
    exit code from the domain.
    """
    hint = to_rest(error.hint)
    command = {} if hint == error.hint else {"command": error.hint}
    return {**error.as_dict(), "hint": hint, **command, "domain": error.domain.value}


def to_rest(hint: str) -> str:
    """Return a hint with requests in place of the commands and options that have one."""
    pieces, end = [], 0
    for command in _COMMAND.finditer(hint):
        # A command without a request is run where the server runs.
        request = _to_request(command["verb"], command["rest"].split()) or command[0]
        pieces += [_name_fields(hint[end : command.start()]), request]
        end = command.end()
    return "".join((*pieces, _name_fields(hint[end:])))


def _to_request(verb: str, words: list[str]) -> str | None:
    """Return the request of a command, or None if there is none with all of its words."""
    call = CALLS.get(verb)
    if call is None:
        return None
    path, fields = call.path, dict[str, Any]()
    rest = iter(words)
    if call.argument or "{job}" in path:
        argument = next(rest, "")
        if not argument or argument.startswith("-"):
            return None
        path = path.replace("{job}", argument)
        fields |= {call.argument: argument} if call.argument else {}
    for word in rest:
        if word in call.words:
            continue
        if word not in call.options:
            return None
        name, value = _take(call.options[word], rest)
        fields[name] = value
    if not fields:
        return f"{call.method} {path}"
    if call.method in ("GET", "DELETE"):
        query = "&".join(f"{name}={value}" for name, value in fields.items())
        return f"{call.method} {path}?{query}"
    return f"{call.method} {path} {json.dumps(fields, ensure_ascii=False)}"


def _take(option: tuple[str, Any], rest: Iterator[str]) -> tuple[str, Any]:
    name, value = option
    if value is _VALUE:
        return name, next(rest, "")
    return name, [next(rest, "")] if value is _LIST else value


def _name_fields(text: str) -> str:
    """Return a text with fields of a body in place of options."""

    def show(option: re.Match[str]) -> str:
        value = option["value"]
        name, kind = OPTIONS[option["name"]]
        if kind is True:
            return f'"{name}": true' + (f" {value}" if value else "")
        return f'"{name}": ' + json.dumps([value] if kind is _LIST else value)

    return _OPTION.sub(show, text)
