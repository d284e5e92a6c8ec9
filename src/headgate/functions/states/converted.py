"""Values as state keeps them, checked strictly, whatever they are: any path is in the message.

`plain.py` has the same for the usual values, compiled.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any, cast
from zoneinfo import ZoneInfo

from headgate.functions.calling.results import BadResult
from headgate.functions.python_types import Kind, PythonType

# What Arrow gives the times that it reads.
ZONE = ZoneInfo("UTC")

Convert = Callable[[Any], Any]


def convert(type_: PythonType, value: Any, where: str) -> Any:
    """Return a value in its plain form, or raise BadResult.

    A struct and a list become tuples, a dict becomes a tuple of pairs. A plain form never changes.

    Args:
        where: The value in messages, as a dotted path.
    """
    if value is None:
        if type_.nullable:
            return None
        raise BadResult(f"{where!r} must not be None")
    return _CONVERT[type_.kind](type_, value, where)


def _wrong(type_: PythonType, value: Any, where: str) -> BadResult:
    name = type_.kind if type_.make is None else type_.make.__name__
    return BadResult(f"{where!r} must be {name}, got {type(value).__name__}: {shown(value)}")


def shown(value: Any) -> str:
    """Return the beginning of a value for a message."""
    try:
        return f"{value!r:.200}"
    except Exception:  # noqa: BLE001 - a class of the user fails when it is shown
        return "a value that cannot be shown"


def _bool(type_: PythonType, value: Any, where: str) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):
        raise _wrong(type_, value, where)
    return bool(value)


def _int(type_: PythonType, value: Any, where: str) -> int:
    if not hasattr(value, "__index__") or type(value).__name__ in ("bool", "bool_"):
        raise _wrong(type_, value, where)
    number = int(operator.index(value))
    if not -(1 << type_.bits - 1) <= number < 1 << type_.bits - 1:
        raise BadResult(f"{where!r} must be an integer of {type_.bits} bits, got {number:,}")
    return number


def _float(type_: PythonType, value: Any, where: str) -> float:
    if not hasattr(value, "__float__") or isinstance(value, str | bytes | Decimal):
        raise _wrong(type_, value, where)
    if type(value).__name__ in ("bool", "bool_"):
        raise _wrong(type_, value, where)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadResult(f"{where!r} must be float: {error}") from None
    if isinstance(value, int) and int(number) != value:
        raise BadResult(f"{where!r} must be float, got an integer that no float is: {value}")
    return number


def _text(type_: PythonType, value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(type_, value, where)
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadResult(f"{where!r} must be text of Unicode, got {shown(value)}") from None
    return text


def _bytes(type_: PythonType, value: Any, where: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(type_, value, where)
    return bytes(value)


def _date(type_: PythonType, value: Any, where: str) -> date:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _wrong(type_, value, where)
    return date(value.year, value.month, value.day)


def _time(type_: PythonType, value: Any, where: str) -> datetime:
    if not isinstance(value, datetime):
        raise _wrong(type_, value, where)
    try:
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (OverflowError, ValueError) as error:
        raise BadResult(f"{where!r} must be a time of the years 1 to 9999: {error}") from None
    return datetime(
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond,
        ZONE,
    )


def _decimal(type_: PythonType, value: Any, where: str) -> Decimal:
    if not isinstance(value, Decimal | int) or isinstance(value, bool):
        raise _wrong(type_, value, where)
    digits, scale = type_.digits
    if isinstance(value, Decimal) and not value.is_finite():
        raise BadResult(f"{where!r} must be a finite decimal, got {value}")
    exact = Context(prec=digits, traps=[Inexact, InvalidOperation])
    try:
        return Decimal(value).quantize(Decimal((0, (1,), -scale)), context=exact)
    except DecimalException:
        raise BadResult(
            f"{where!r} must be a decimal with at most {digits - scale} digits before and "
            f"{scale} behind the point, got {shown(value)}"
        ) from None


def _list(type_: PythonType, value: Any, where: str) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        raise _wrong(type_, value, where)
    element = cast("PythonType", type_.element)
    return tuple([convert(element, item, where) for item in value])


def _map(type_: PythonType, value: Any, where: str) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, Mapping):
        raise _wrong(type_, value, where)
    element = cast("PythonType", type_.element)
    key = PythonType(Kind.TEXT)
    return tuple(
        [(convert(key, name, where), convert(element, item, where)) for name, item in value.items()]
    )


def _struct(type_: PythonType, value: Any, where: str) -> tuple[Any, ...]:
    prefix = f"{where}." if where else ""
    is_named = not isinstance(value, Mapping)
    has_fields = hasattr(value, "_fields")
    if (
        is_named
        and not has_fields
        and (not dataclasses.is_dataclass(value) or isinstance(value, type))
    ):
        raise BadResult(
            f"{where!r} must be {_words(type_)}, got {type(value).__name__}: {shown(value)}"
            if where
            else f"a row must be a dataclass, a dict or a row, got {type(value).__name__}: "
            f"{shown(value)}"
        )
    parts = []
    for name, inner in type_.fields:
        try:
            if not is_named or (has_fields and not hasattr(type(value), name)):
                part = value[name]
            else:
                part = getattr(value, name)
        except (AttributeError, KeyError, TypeError, IndexError, ValueError):
            what = f"{where!r}" if where else "the row"
            raise BadResult(f"{what} has no {name!r}: {shown(value)}") from None
        parts.append(convert(inner, part, prefix + name))
    return tuple(parts)


def _words(type_: PythonType) -> str:
    return "a dataclass or a dict" if type_.make is None else type_.make.__name__


_CONVERT: dict[Kind, Callable[[PythonType, Any, str], Any]] = {
    Kind.BOOL: _bool,
    Kind.INT: _int,
    Kind.FLOAT: _float,
    Kind.TEXT: _text,
    Kind.BYTES: _bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.DECIMAL: _decimal,
    Kind.LIST: _list,
    Kind.MAP: _map,
    Kind.STRUCT: _struct,
}
