"""The Python type of a value that a process keeps, resolved when the flow is declared."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any


class Kind(enum.StrEnum):
    """What a value is."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "str"
    BYTES = "bytes"
    DATE = "date"
    TIME = "datetime"
    DECIMAL = "Decimal"
    LIST = "list"
    MAP = "dict"
    STRUCT = "dataclass"


@dataclass(frozen=True, slots=True)
class PythonType:
    """A type of values.

    Attributes:
        bits: The size of an integer or a float.
        digits: The digits of a decimal, and how many of them are behind the point.
        element: The type of a list's items, or of a map's values.
        fields: The fields of a struct, in order.
        make: The dataclass of a struct; `dict` for a dictionary.
    """

    kind: Kind
    nullable: bool = False
    bits: int = 64
    digits: tuple[int, int] = (38, 18)
    element: PythonType | None = None
    fields: tuple[tuple[str, PythonType], ...] = ()
    make: type | None = None


class UnsupportedType(Exception):  # noqa: N818 - what it is
    """An annotation that no column can hold."""


_PRIMITIVES: Mapping[Any, Kind] = {
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    str: Kind.TEXT,
    bytes: Kind.BYTES,
    date: Kind.DATE,
    datetime: Kind.TIME,
    Decimal: Kind.DECIMAL,
}
_KEYS = frozenset({Kind.BOOL, Kind.INT, Kind.TEXT, Kind.BYTES, Kind.DATE, Kind.TIME})


def python_type(hint: Any) -> PythonType:
    """Return the type that an annotation describes, or raise UnsupportedType."""
    return _type(hint, ())


def key_type(hint: Any) -> PythonType:
    """Return the type of a map's keys, or raise UnsupportedType."""
    type_ = _type(hint, ())
    if type_.kind not in _KEYS or type_.nullable:
        raise UnsupportedType(
            f"{shown(hint)} cannot be a key; use str, int, bool, bytes, date or datetime"
        )
    return type_


def shown(hint: Any) -> str:
    """Return an annotation as people write it."""
    return hint.__qualname__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _type(hint: Any, outer: tuple[type, ...]) -> PythonType:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        present = [argument for argument in arguments if argument is not types.NoneType]
        if len(present) != 1 or len(present) == len(arguments):
            raise UnsupportedType(f"{shown(hint)} is a union")
        return dataclasses.replace(_type(present[0], outer), nullable=True)
    if origin is list:
        return PythonType(Kind.LIST, element=_type(arguments[0], outer))
    if origin is dict:
        if arguments[0] is not str:
            raise UnsupportedType(f"{shown(hint)} is a dict whose keys are not str")
        return PythonType(Kind.MAP, element=_type(arguments[1], outer))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _struct(hint, outer)
    try:
        return PythonType(_PRIMITIVES[hint])
    except (KeyError, TypeError):
        raise UnsupportedType(f"{shown(hint)} is not the type of a column") from None


def _struct(cls: type, outer: tuple[type, ...]) -> PythonType:
    if cls in outer:
        raise UnsupportedType(f"{cls.__name__} contains itself")
    try:
        hints = typing.get_type_hints(cls)
    except (NameError, TypeError, SyntaxError) as cause:
        raise UnsupportedType(f"annotations of {cls.__name__} cannot be read: {cause}") from cause
    fields = []
    for field in dataclasses.fields(typing.cast("Any", cls)):
        type_ = _type(hints[field.name], (*outer, cls))
        if field.default is None:
            type_ = dataclasses.replace(type_, nullable=True)
        fields.append((field.name, type_))
    if not fields:
        raise UnsupportedType(f"{cls.__name__} has no fields")
    return PythonType(Kind.STRUCT, fields=tuple(fields), make=cls)
