"""Compiled ways between values and their plain forms.

A plain form is immutable: primitives as they are, tuples for structs and lists, a tuple of pairs
for a dict. Source is generated for each type, since a process converts several values for each
event.
"""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, cast

from headgate.functions.python_types import Kind, PythonType
from headgate.functions.states.converted import ZONE, convert

Convert = Callable[[Any], Any]

# Tests of the usual values; all others take the slow way, which converts or refuses them.
_TESTS = {
    Kind.BOOL: "type({0}) is bool",
    Kind.FLOAT: "type({0}) is float",
    Kind.TEXT: "type({0}) is str and {0}.isascii()",
    Kind.BYTES: "type({0}) is bytes",
    Kind.DATE: "type({0}) is date",
}
# Frames of this file are not the user's: calls.py looks for the folder in the name.
_FILE = "<headgate/functions/plain>"


def to_plain(type_: PythonType, where: str) -> Convert:
    """Return how a value becomes plain; it raises BadResult with the path of what does not fit."""
    if type_.kind is Kind.STRUCT:
        if type_.make is None:
            return _by_class(type_, where)
        return _struct_to_plain(type_, where, type_.make)
    test = plain_test(type_, "value")
    if test is not None:
        return compiled(
            ["def to_plain(value):", f" if {test}: return value", " return slow(value)"],
            {"slow": _slow(type_, where), "date": date},
            "to_plain",
        )
    if type_.kind is Kind.TIME:
        return _time_to_plain(type_, where)
    if type_.kind is Kind.LIST:
        return _list_to_plain(type_, where)
    return _slow(type_, where)


def from_plain(type_: PythonType) -> Convert | None:
    """Return how a plain form becomes a new value; None if it is the value."""
    if type_.kind is Kind.STRUCT:
        return _struct_from_plain(type_)
    if type_.kind is Kind.LIST:
        return _list_from_plain(from_plain(cast("PythonType", type_.element)))
    if type_.kind is Kind.MAP:
        return _dict_from_plain(from_plain(cast("PythonType", type_.element)))
    return None


def row_emitter(type_: PythonType, cls: type, names: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return what emits rows of a class: the plain form of each field, and the row's origin.

    Args:
        names: `add0` takes the first field, and so on; `add` takes a whole row in plain form,
            `mark` the `scope`'s origin, and `other` a row of another class.
    """
    body = _struct_body(type_, "", cls)
    code = [" add(slow(value))"]
    if body is not None:
        code = [
            " try:",
            *body.reads,
            " except (KeyError, AttributeError): add(slow(value))",
            " else:",
            f"  if {body.test}:",
            # All are plain before the first is added: one that is wrong raises.
            *(f"   v{i} = {part}" for i, part in enumerate(body.parts) if part != f"v{i}"),
            *(f"   add{i}(v{i})" for i in range(len(body.parts))),
            "  else: add(slow(value))",
        ]
    lines = [
        "def emit(value):",
        " if type(value) is not cls: return other(value)",
        *code,
        " mark(scope.origin)",
    ]
    known = {"slow": _slow(type_, ""), "cls": cls, **names}
    return compiled(lines, {**({} if body is None else body.names), **known}, "emit")


def _by_class(type_: PythonType, where: str) -> Convert:
    known: dict[type, Convert] = {}

    def plain(value: Any) -> Any:
        convert = known.get(type(value))
        if convert is None:
            convert = known[type(value)] = _struct_to_plain(type_, where, type(value))
        return convert(value)

    return plain


def _slow(type_: PythonType, where: str) -> Convert:
    return lambda value: convert(type_, value, where)


def plain_test(type_: PythonType, name: str) -> str | None:
    """Return an expression that is true if a value is its own plain form; None if it never is."""
    if type_.kind is Kind.INT:
        most = (1 << type_.bits - 1) - 1
        test = f"type({name}) is int and -{most} <= {name} <= {most}"
    elif type_.kind in _TESTS:
        test = _TESTS[type_.kind].format(name)
    else:
        return None
    return f"({name} is None or {test})" if type_.nullable else test


@dataclass(frozen=True, slots=True)
class _Body:
    """Source that makes structs of one class plain.

    Attributes:
        reads: Lines that read the fields of `value`; they raise KeyError or AttributeError.
        test: An expression that is true if what was read may be taken as it is.
        parts: An expression for the plain form of each field.
    """

    reads: list[str]
    test: str
    parts: list[str]
    names: dict[str, Any]


def _struct_body(type_: PythonType, where: str, cls: type) -> _Body | None:
    """Return None for a class that takes the slow way."""
    is_mapping = issubclass(cls, Mapping)
    if not is_mapping and not dataclasses.is_dataclass(cls):
        return None
    names: dict[str, Any] = {"date": date}
    reads, tests, parts = [], [], []
    for i, (name, inner) in enumerate(type_.fields):
        value = f"v{i}"
        if is_mapping:
            reads.append(f"  {value} = value[{name!r}]")
        elif name.isidentifier() and not keyword.iskeyword(name):
            reads.append(f"  {value} = value.{name}")
        else:
            return None
        test = plain_test(inner, value)
        if test is not None:
            tests.append(test)
            parts.append(value)
        else:
            names[f"plain{i}"] = to_plain(inner, f"{where}.{name}" if where else name)
            parts.append(f"plain{i}({value})")
    return _Body(reads, " and ".join(tests) or "True", parts, names)


def _struct_to_plain(type_: PythonType, where: str, cls: type) -> Convert:
    slow = _slow(type_, where)
    body = _struct_body(type_, where, cls)
    if body is None:
        return slow
    lines = [
        "def to_plain(value):",
        " if type(value) is not cls: return slow(value)",
        " try:",
        *body.reads,
        " except (KeyError, AttributeError): return slow(value)",
        f" if {body.test}: return ({', '.join(body.parts)},)",
        " return slow(value)",
    ]
    return compiled(lines, {"slow": slow, "cls": cls, **body.names}, "to_plain")


def _struct_from_plain(type_: PythonType) -> Convert:
    cls: Any = type_.make
    names: dict[str, Any] = {"cls": cls}
    values, arguments, later = [], [], []
    declared = {field.name: field for field in dataclasses.fields(cls)}
    in_order = True
    for i, (name, inner) in enumerate(type_.fields):
        values.append(f"v{i}")
        part = f"v{i}"
        make = from_plain(inner)
        if make is not None:
            names[f"make{i}"] = make
            part = f"make{i}(v{i})"
        if not declared[name].init:
            in_order = False
            later.append(f" put(made, {name!r}, {part})")
            continue
        in_order = in_order and not declared[name].kw_only
        arguments.append(part if in_order else f"{name}={part}")
    names["put"] = object.__setattr__
    lines = [
        "def from_plain(plain):",
        " if plain is None: return None",
        f" {', '.join(values)}, = plain",
        f" made = cls({', '.join(arguments)})",
        *later,
        " return made",
    ]
    return compiled(lines, names, "from_plain")


def _time_to_plain(type_: PythonType, where: str) -> Convert:
    slow = _slow(type_, where)

    def plain(value: Any) -> Any:
        if type(value) is datetime:
            zone = value.tzinfo
            if zone is ZONE:
                return value if not value.fold else value.replace(fold=0)
            if zone is None or zone is UTC:
                return value.replace(tzinfo=ZONE, fold=0)
        return slow(value)

    return plain


def _list_to_plain(type_: PythonType, where: str) -> Convert:
    slow = _slow(type_, where)
    element = to_plain(cast("PythonType", type_.element), where)

    def plain(value: Any) -> Any:
        if type(value) is list:
            return tuple([element(item) for item in value])
        return slow(value)

    return plain


def _list_from_plain(make: Convert | None) -> Convert:
    if make is None:
        return lambda plain: None if plain is None else list(plain)
    return lambda plain: None if plain is None else [make(item) for item in plain]


def _dict_from_plain(make: Convert | None) -> Convert:
    if make is None:
        return lambda plain: None if plain is None else dict(plain)
    return lambda plain: None if plain is None else {key: make(item) for key, item in plain}


def compiled(lines: list[str], names: dict[str, Any], name: str) -> Callable[..., Any]:
    """Return the function of this name that some source defines."""
    # Names come from dataclasses of the user and are identifiers; all others are quoted.
    exec(compile("\n".join(lines), _FILE, "exec"), names)
    return cast("Callable[..., Any]", names[name])
