"""What a function of the user takes and returns, from its annotations."""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.errors import HeadgateError
from headgate.flow.names import did_you_mean
from headgate.flow.schemas.dataclass_fields import fields_of_dataclass, is_dataclass_type
from headgate.flow.schemas.schema import Schema, schema_of, type_to_ddl
from headgate.flow.schemas.types import (
    INTEGERS,
    Field,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
    Unknown,
)
from headgate.functions.declared import DeclaredProcess
from headgate.functions.stored import RowType

_MANY = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Sequence,
    list,
    tuple,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function.

    Attributes:
        argument: What it is called with.
        columns: The columns that it needs; None for all.
        result: The annotation of its result, or None.
    """

    argument: RowType
    columns: tuple[str, ...] | None
    result: Any


def read_signature(function: Callable[..., Any], rows: Schema, *, what: str) -> Signature:
    """Return the types of a function that is called with one row.

    Args:
        rows: The columns of the rows.
        what: Opening words of an error message.
    """
    hints = _hints(function)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Signature(RowType(), None, None)
    needed = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    wrong = [
        parameter
        for parameter in needed[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    if not parameters or wrong:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: the function must take one argument, a row; its signature is "
            f"{inspect.signature(function)}",
            hint="bind the others first: functools.partial(function, limit=10)",
        )
    argument, columns = _argument(hints.get(parameters[0].name), rows, what)
    return Signature(argument, columns, hints.get("return"))


def read_process(declared: DeclaredProcess, rows: Schema, *, what: str) -> Signature:
    """Return the types of a process, from `KeyedProcess[Order, Alert]`.

    Args:
        rows: The columns of its events.
        what: Opening words of an error message.
    """
    return _process_signature(declared.event, declared.result, rows, what)


def read_right(declared: DeclaredProcess, rows: Schema, *, what: str) -> Signature:
    """Return the types of a process for events of the right one of two streams."""
    return _process_signature(declared.right, declared.result, rows, what)


def _process_signature(event: Any, result: Any, rows: Schema, what: str) -> Signature:
    is_rows = event in (Any, dict) or typing.get_origin(event) is dict or is_dataclass_type(event)
    if not is_rows:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: it takes {getattr(event, '__name__', event)}, and its events are rows",
            hint="name a dataclass, dict or Any: class Fraud(KeyedProcess[Order, Alert])",
        )
    argument, columns = _argument(event, rows, what)
    return Signature(argument, columns, result)


def rule_type(rule: Any, rows: Schema, *, what: str) -> RowType:
    """Return what the rows of a broadcast are for a process, by `BroadcastProcess[…, Rule, …]`.

    Args:
        rows: The columns of the broadcast.
        what: Opening words of an error message.
    """
    is_rows = rule in (Any, dict) or typing.get_origin(rule) is dict or is_dataclass_type(rule)
    if not is_rows:
        raise HeadgateError(
            "BAD_FUNCTION",
            f"{what}: it takes {getattr(rule, '__name__', rule)} from its broadcast, which has "
            "rows",
            hint="name a dataclass, dict or Any: BroadcastProcess[Order, Rule, Priced]",
        )
    return _argument(rule, rows, what)[0]


def process_schema(
    signature: Signature, schema: type | str | Schema | None, *, what: str
) -> Schema:
    """Return the columns of the rows that a process emits: those declared, or its dataclass."""
    if schema is not None:
        return schema_of(schema)
    if is_dataclass_type(signature.result):
        return schema_of(signature.result)
    raise HeadgateError(
        "BAD_FUNCTION",
        f"{what}: the columns of the rows that it emits are not known",
        hint="name a dataclass: class Fraud(KeyedProcess[Order, Alert]), or declare the columns: "
        "schema='id BIGINT, name STRING'",
    )


def result_schema(
    signature: Signature, schema: type | str | Schema | None, *, many: bool, what: str
) -> Schema:
    """Return the columns of a function's results: those declared, or its annotated dataclass.

    Args:
        many: True if it returns several results for each row.
    """
    if schema is not None:
        return schema_of(schema)
    returned = signature.result
    if many and typing.get_origin(returned) in _MANY:
        returned = typing.get_args(returned)[0]
    if is_dataclass_type(returned):
        return schema_of(returned)
    shown = "-> Iterator[Clean]" if many else "-> Clean"
    raise HeadgateError(
        "BAD_FUNCTION",
        f"{what}: the columns of its results are not known",
        hint=f"annotate the result with a dataclass ({shown}), or declare the columns: "
        "schema='id BIGINT, name STRING'",
    )


def _argument(annotation: Any, rows: Schema, what: str) -> tuple[RowType, tuple[str, ...] | None]:
    """Return what a function is called with, and the columns that it needs."""
    if annotation is dict or typing.get_origin(annotation) is dict:
        return RowType(dict), None
    if is_dataclass_type(annotation):
        return _row_type(annotation), _columns(annotation, rows, what)
    return RowType(), None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    plain = getattr(function, "func", function)
    if isinstance(plain, type):
        plain = vars(plain).get("__init__", plain)
    elif not inspect.isroutine(plain):
        plain = type(plain).__call__
    try:
        return typing.get_type_hints(plain)
    except (NameError, TypeError, AttributeError):
        return {}


def _row_type(cls: type) -> RowType:
    """Return a dataclass with those of its fields."""
    parts = {
        name: _row_type(nested)
        for name, hint in typing.get_type_hints(cls).items()
        if (nested := _find_dataclass(hint)) is not None
    }
    return RowType(cls, parts)


def _find_dataclass(hint: Any) -> type | None:
    """Return the dataclass in an annotation: itself, or inside of a list, dict or union."""
    if is_dataclass_type(hint):
        return typing.cast("type", hint)
    inner = (_find_dataclass(part) for part in typing.get_args(hint))
    return next((part for part in inner if part is not None), None)


def _columns(argument: type, rows: Schema, what: str) -> tuple[str, ...]:
    """Return the columns for the fields of a dataclass; refuse what the rows do not have."""
    defaults = {
        declared.name
        for declared in dataclasses.fields(argument)
        if declared.default is not dataclasses.MISSING
        or declared.default_factory is not dataclasses.MISSING
    }
    names = []
    for field in fields_of_dataclass(argument):
        column = rows.find_column(field.name)
        if column is None:
            if field.name in defaults:
                continue
            raise HeadgateError(
                "UNKNOWN_COLUMN",
                f"{what}: it takes {argument.__name__} with {field.name!r}, and the rows have no "
                "such column",
                hint=did_you_mean(field.name, rows.names),
            )
        if not _fits(column.type, field.type):
            raise HeadgateError(
                "BAD_FUNCTION",
                f"{what}: it takes {argument.__name__} with {field.name!r} as "
                f"{type_to_ddl(field.type)}, and the column is {type_to_ddl(column.type)}",
                hint=f"change the type in {argument.__name__}, or cast the column first",
            )
        names.append(field.name)
    return tuple(names)


def _fits(column: Type, declared: Type) -> bool:
    """Tell whether values of a column have the type that Python code declares."""
    match column, declared:
        case (Unknown(), _) | (_, Unknown()):
            return True
        case Primitive(name), Primitive(other):
            return _python_kind(name) == _python_kind(other)
        case ListOf(element, _), ListOf(other, _):
            return _fits(element, other)
        case MapOf(value, _), MapOf(other, _):
            return _fits(value, other)
        case Struct(fields), Struct(others):
            types: dict[str, Field] = {field.name: field for field in fields}
            return all(
                field.name in types and _fits(types[field.name].type, field.type)
                for field in others
            )
        case _:
            return False


def _python_kind(name: str) -> str:
    if name in INTEGERS:
        return "integer"
    if name in ("float", "double"):
        return "float"
    return "decimal" if name.startswith("decimal") else name
