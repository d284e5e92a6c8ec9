"""Schemas from dataclasses."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from datetime import date, datetime
from decimal import Decimal

from headgate.errors import HeadgateError
from headgate.flow.json_values import Json
from headgate.flow.schemas.types import (
    MISSING,
    Field,
    ListOf,
    MapOf,
    Missing,
    Primitive,
    Struct,
    Type,
    check_fields,
)

_PRIMITIVES: dict[object, str] = {
    int: "bigint",
    float: "double",
    str: "string",
    bool: "boolean",
    bytes: "binary",
    datetime: "timestamp",
    date: "date",
    Decimal: "decimal(38,18)",
}
_HINT = (
    "use int, float, str, bool, bytes, datetime, date, Decimal, list[X], dict[str, X], "
    "X | None or another dataclass"
)


def is_dataclass_type(value: object) -> bool:
    """Return True if `value` is a dataclass itself, not an instance."""
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def fields_of_dataclass(cls: type) -> tuple[Field, ...]:
    """Return the fields of a dataclass, in order, or refuse with SCHEMA_UNSUPPORTED."""
    return _fields(cls, ())


def field_of_hint(name: str, hint: object, where: str) -> Field:
    """Return a field with the type of an annotation, or refuse with SCHEMA_UNSUPPORTED.

    Args:
        where: What is annotated, in error messages: "Fraud.last".
    """
    kind, nullable = _type(hint, where, ())
    return Field(name, kind, nullable)


def _fields(cls: type, outer: tuple[type, ...]) -> tuple[Field, ...]:
    if cls in outer:
        raise _unsupported(
            cls.__name__, "it contains itself, and recursive types are not supported"
        )
    try:
        hints = typing.get_type_hints(cls)
    except (NameError, TypeError, SyntaxError) as cause:
        raise _unsupported(cls.__name__, f"its annotations cannot be read ({cause})") from cause
    declared = dataclasses.fields(cls)
    return tuple(
        _field(cls, declared_field, hints[declared_field.name], (*outer, cls))
        for declared_field in declared
    )


def _field(
    cls: type, declared: dataclasses.Field[object], hint: object, outer: tuple[type, ...]
) -> Field:
    where = f"{cls.__name__}.{declared.name}"
    kind, nullable = _type(hint, where, outer)
    default = _default(declared, kind, where)
    return Field(declared.name, kind, nullable or default is None, default)


def _type(hint: object, where: str, outer: tuple[type, ...]) -> tuple[Type, bool]:
    """Return the type of an annotation, and whether it allows None."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        present = [argument for argument in arguments if argument is not types.NoneType]
        if len(present) != 1 or len(present) == len(arguments):
            raise _unsupported(where, f"its type {_shown(hint)} is a union")
        return _type(present[0], where, outer)[0], True
    if origin is list:
        return ListOf(*_type(arguments[0], where, outer)), False
    if origin is dict:
        if arguments[0] is not str:
            raise _unsupported(where, f"its type is {_shown(hint)}, and map keys must be str")
        return MapOf(*_type(arguments[1], where, outer)), False
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        fields = _fields(hint, outer)
        check_fields(fields)
        return Struct(fields), False
    try:
        return Primitive(_PRIMITIVES[hint]), False
    except (KeyError, TypeError):
        raise _unsupported(where, f"its type {_shown(hint)} is not supported") from None


def _default(declared: dataclasses.Field[object], kind: Type, where: str) -> Json | Missing:
    if declared.default is not dataclasses.MISSING:
        return _as_json(declared.default, kind, where)
    if declared.default_factory is not dataclasses.MISSING:
        return _as_json(declared.default_factory(), kind, where)
    return MISSING


def _as_json(value: object, kind: Type, where: str) -> Json:
    """Return a default as JSON of the field's type, so that it reads back unchanged."""
    match kind, value:
        case _, None:
            return None
        case Primitive("boolean"), bool():
            return value
        case Primitive("bigint"), int() if not isinstance(value, bool) and _is_long(value):
            return value
        case Primitive("double"), int() | float() if not isinstance(value, bool):
            if math.isfinite(value):
                return float(value)
        case Primitive("string"), str():
            return value
        case ListOf(element, _), list():
            return [_as_json(item, element, where) for item in value]
        case MapOf(element, _), dict() if all(isinstance(key, str) for key in value):
            return {key: _as_json(item, element, where) for key, item in value.items()}
        case Struct(fields), _ if dataclasses.is_dataclass(value):
            return {
                part.name: _as_json(getattr(value, part.name), part.type, where) for part in fields
            }
    raise HeadgateError(
        "SCHEMA_UNSUPPORTED",
        f"cannot build a schema of {where}: its default {value!r} does not fit its type",
        hint="use a plain number, text, boolean, list or dict of the field's type, or None",
    )


def _is_long(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _shown(hint: object) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)


def _unsupported(where: str, problem: str) -> HeadgateError:
    return HeadgateError(
        "SCHEMA_UNSUPPORTED", f"cannot build a schema of {where}: {problem}", hint=_HINT
    )
