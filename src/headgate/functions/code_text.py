"""The code of a function as text: its source, or its instructions if it has no source."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

# Values whose text is the same in every process.
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def read_code(function: Any) -> str:
    """Return the code of a function, or of an object's class, as text.

    The text is the same in every process. Functions that were typed at a prompt or in a notebook
    may have no source, and classes there never have: Python looks for the file of their module.
    """
    has_code = inspect.isroutine(function) or inspect.isclass(function)
    return _read(function if has_code else type(function))


def _read(code: Any) -> str:
    try:
        return _read_source(code)
    except (OSError, TypeError):
        if inspect.isclass(code):
            return "\n".join(_read_members(code))
        instructions = getattr(code, "__code__", None)
        return _name(code) if instructions is None else _read_instructions(instructions)


def _read_source(code: Any) -> str:
    try:
        return inspect.getsource(code)
    except SystemError:
        # Python before 3.11.8 counts the depth of all parsers of a process together, and fails if
        # two threads parse at the same time.
        return inspect.getsource(code)


def _read_members(kind: type) -> Iterator[str]:
    """Yield the functions and the plain values of a class, in the order of its definition."""
    yield _name(kind)
    yield from (_name(base) for base in kind.__bases__)
    for name, value in vars(kind).items():
        member = getattr(value, "__func__", getattr(value, "fget", value))
        if inspect.isfunction(member):
            yield f"{name}: {_read(member)}"
        elif isinstance(value, _PLAIN) and not name.startswith("__"):
            yield f"{name} = {value!r}"


def _read_instructions(code: CodeType) -> str:
    """Return instructions with the names and the constants that they refer to."""
    constants = [
        _read_instructions(value) if isinstance(value, CodeType) else _constant(value)
        for value in code.co_consts
    ]
    return f"{code.co_code!r}{code.co_names!r}{constants!r}"


def _constant(value: Any) -> str:
    # The order of a set differs from process to process.
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)


def _name(code: Any) -> str:
    return str(getattr(code, "__qualname__", type(code).__qualname__))
