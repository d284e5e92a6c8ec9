"""Rules for names of flows, operators, topics, columns and functions."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from headgate.errors import HeadgateError

_Member = TypeVar("_Member", bound=StrEnum)

_FLOW = re.compile(r"[a-z0-9][a-z0-9-]*")
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_TOPIC = re.compile(r"[A-Za-z0-9-][A-Za-z0-9._-]*")
_FUNCTION = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_PLAIN = r"[A-Za-z_][A-Za-z0-9_]*"
_PART = rf"(?:{_PLAIN}|`(?:[^`]|``)+`)"
_PATH = re.compile(rf"{_PART}(?:\.{_PART})*")
_PARTS = re.compile(_PART)


def check_flow_name(name: str) -> str:
    """Return `name` if it is a valid flow name; it also names the job and its folder."""
    return _checked(
        name, _FLOW, "a flow", "lower-case letters, digits and '-', a letter or digit first"
    )


def check_uid(uid: str) -> str:
    """Return `uid` if it is valid for an operator."""
    return _checked(
        uid, _UID, "an operator", "letters, digits, '-' and '_', a letter or digit first"
    )


def check_label(name: str, *, what: str) -> str:
    """Return `name` if it is valid as an operator's name for people.

    Args:
        what: Opening words of the error message.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > 100 or not name.isprintable():
        raise HeadgateError(
            "BAD_NAME",
            f"{what}: its name must be a line of 1 to 100 printable characters, got {name!r:.120}",
            hint="name='Match users'; omit it to show the uid",
        )
    return name


def check_side_name(name: str) -> str:
    """Return `name` if it is valid for a side output."""
    if name == "out":
        raise HeadgateError(
            "BAD_NAME",
            "cannot name a side output 'out': that is the main output",
            hint="use .out for the main output, or another name",
        )
    return _checked(
        name, _UID, "a side output", "letters, digits, '-' and '_', a letter or digit first"
    )


def is_topic_name(name: str) -> bool:
    """Return True if a topic may have a name, on every log."""
    return _TOPIC.fullmatch(name) is not None


def check_topic_name(name: str) -> str:
    """Return `name` if it is a valid topic name on every log."""
    return _checked(
        name, _TOPIC, "a topic", "letters, digits, '.', '_' and '-', no '.' or '_' first"
    )


def check_function(name: str) -> str:
    """Return `name` if it has the form `module:function`."""
    if not isinstance(name, str):
        raise HeadgateError(
            "BAD_NAME",
            f"cannot use {name!r} as a function: it is not callable, and not the name of one",
            hint='pass a function, or its name: transform("my_module:my_function")',
        )
    return _checked(name, _FUNCTION, "a function", "module:function, as in my_package.clean:run")


def check_path(path: str | os.PathLike[str]) -> str:
    """Return `path` as text if its name is UTF-8, which the JVM requires.

    Raises:
        HeadgateError: PATH_NOT_UTF8.
    """
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise HeadgateError(
            "PATH_NOT_UTF8",
            f"cannot use {text!r}: the name is not UTF-8, and Spark could not open it",
            hint="rename it, or use another folder",
        ) from error
    return text


def check_column_name(name: str) -> str:
    """Return `name` if it is valid for a new column without quoting."""
    return _checked(name, re.compile(_PLAIN), "a column", "letters, digits and '_', no digit first")


def split_path(path: str) -> tuple[str, ...] | None:
    """Return the parts of a dotted column path, or None if `path` is something else.

    A part that is not a plain name stands in backquotes: "user.`first name`".
    """
    if not _PATH.fullmatch(path):
        return None
    return tuple(unquote(part) for part in _PARTS.findall(path))


def quote(name: str) -> str:
    """Return a column's name as SQL, in backquotes if needed."""
    return name if re.fullmatch(_PLAIN, name) else "`" + name.replace("`", "``") + "`"


def unquote(name: str) -> str:
    """Return a name without backquotes."""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def parse_member(kind: type[_Member], text: str, *, name: str, code: str, what: str) -> _Member:
    """Return the member of an enum that a user has named.

    Args:
        name: The argument's name, for the error message.
        code: The code of the error.
        what: Opening words of the error message.
    """
    try:
        return kind(text)
    except ValueError:
        members = " or ".join(repr(member.value) for member in kind)
        raise HeadgateError(
            code,
            f"{what}: {name} must be {members}, got {text!r}",
            hint=did_you_mean(str(text), list(kind)),
        ) from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name, or with all known names."""
    names = list(known)
    by_lower = {candidate.lower(): candidate for candidate in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known: {shown}" if names else "there are none"


def _checked(name: str, pattern: re.Pattern[str], what: str, needed: str) -> str:
    if isinstance(name, str) and pattern.fullmatch(name):
        return name
    hint = ""
    if isinstance(name, str) and pattern is not _FUNCTION:
        corrected = _corrected(name, pattern)
        hint = f"try {corrected!r}" if corrected else ""
    raise HeadgateError(
        "BAD_NAME",
        f"cannot name {what} {name!r}: a name must have {needed}",
        hint=hint or f"use {needed}",
    )


def _corrected(name: str, pattern: re.Pattern[str]) -> str | None:
    dashed = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    for candidate in (dashed, dashed.lower(), dashed.replace("-", "_")):
        if pattern.fullmatch(candidate):
            return candidate
    return None
