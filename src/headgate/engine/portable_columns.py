"""Columns of a file that someone else wrote, fitted to those a table has.

Decided from the types alone, before a row is read. A type is converted where no value changes by
it: whole numbers of another width, whole numbers in place of fractions, a timestamp without a zone
taken as UTC. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
)

from headgate.flow.names import did_you_mean
from headgate.flow.schema import (
    MISSING,
    Field,
    ListOf,
    MapOf,
    Primitive,
    Schema,
    Struct,
    Type,
    Unknown,
    type_to_ddl,
)

Change: TypeAlias = Callable[[Column], Column]

_FRACTIONS = frozenset({"float", "double"})
_NUMBERS = _FRACTIONS | {"tinyint", "smallint", "int", "bigint"}
# Up to here every whole number has a double of its own.
_EXACT = 2**53


class Misfit(Exception):  # noqa: N818 - a reason, which becomes an error where it is caught
    """A column that cannot be taken: which one, what was found, and the next step."""

    def __init__(self, column: str, found: str, hint: str) -> None:
        super().__init__(column, found, hint)
        self.column = column
        self.found = found
        self.hint = hint


def fit_row(found: DataType, schema: Schema, default: Callable[[str], Column]) -> Change:
    """Return what makes a struct of these columns a row of a table.

    Args:
        found: The type of the file's column `row`; its fields may have any order, and those that
            may be null or have a default may be missing.
        default: Returns what a column holds where the file does not have it.

    Raises:
        Misfit: A column is missing, is not one of the table's, or has another type.
    """
    if isinstance(found, NullType):
        return _absent(Struct(schema.fields))
    if not isinstance(found, StructType):
        raise _mismatch("row", found, "a struct of the table's columns")
    return _struct(found, schema.fields, "row", default)


def fit_version(found: DataType, column: str, *, to: str) -> Change:
    """Return what makes a column a whole number, or null.

    Doubles are taken as far as they are exact: a column with nulls is one of doubles in pandas.
    """
    if isinstance(found, IntegralType | NullType):
        return lambda it: it.cast(to)
    if isinstance(found, FloatType | DoubleType):
        return lambda it: _whole(it.cast("double"), column).cast(to)
    raise _mismatch(column, found, to.upper())


def fit(found: DataType, wanted: Type, path: str) -> Change | None:
    """Return what makes a value of one type one of another; None where it is one already.

    Raises:
        Misfit: That cannot be done without a loss.
    """
    if isinstance(found, NullType):
        return _absent(wanted)
    match wanted, found:
        case Primitive(name), _:
            return _primitive(found, name, path)
        case Struct(fields), StructType():
            return _struct(found, fields, path, None)
        case ListOf(element, _), ArrayType(elementType=inner):
            return _of_list(fit(inner, element, f"{path}[]"))
        case MapOf(value, _), MapType(keyType=StringType(), valueType=inner):
            return _of_map(fit(inner, value, f"{path}[]"))
        case Unknown(), _:
            raise ValueError("a table's columns have types that are known")
        case _:
            raise _mismatch(path, found, type_to_ddl(wanted))


def _primitive(found: DataType, name: str, path: str) -> Change | None:
    if found.simpleString() == name:
        return None
    if _is_taken(found, name):
        # An overflow is an error: Spark's ANSI mode is on.
        return lambda it: it.cast(name)
    raise _mismatch(path, found, name.upper())


def _is_taken(found: DataType, name: str) -> bool:
    match found:
        case IntegralType():
            return name in _NUMBERS or name.startswith("decimal")
        case FloatType() | DoubleType():
            # A double out of a tool that knows no floats is a float.
            return name in _FRACTIONS
        case DecimalType(scale=scale):
            return name.startswith("decimal") and scale <= int(name[:-1].split(",")[1])
        case TimestampNTZType():
            return name == "timestamp"
        case _:
            return False


def _struct(
    found: StructType,
    fields: Sequence[Field],
    path: str,
    default: Callable[[str], Column] | None,
) -> Change:
    known = {each.name for each in fields}
    for each in found.fields:
        if each.name not in known:
            raise Misfit(
                f"{path}.{each.name}",
                "is not one of the table's",
                did_you_mean(each.name, known),
            )
    there = {each.name: each.dataType for each in found.fields}
    parts = [(each, _part(there.get(each.name), each, path, default)) for each in fields]

    def make(it: Column) -> Column:
        made = f.struct(*(change(it).alias(each.name) for each, change in parts))
        return f.when(it.isNotNull(), made)

    return make


def _part(
    found: DataType | None, field: Field, path: str, default: Callable[[str], Column] | None
) -> Change:
    """Return what makes a field of a struct out of the struct that was found."""
    inner = f"{path}.{field.name}"
    if found is not None:
        change = fit(found, field.type, inner)
        if change is None:
            return lambda it: it.getField(field.name)
        return lambda it: change(it.getField(field.name))
    if default is not None and (field.nullable or field.default is not MISSING):
        return lambda _: default(field.name)
    if field.nullable:
        return _absent(field.type)
    raise Misfit(inner, "is missing, and must not be null", f"add column {field.name} to row")


def _of_list(change: Change | None) -> Change | None:
    return None if change is None else (lambda it: f.transform(it, change))


def _of_map(change: Change | None) -> Change | None:
    return None if change is None else (lambda it: f.transform_values(it, lambda _, v: change(v)))


def _absent(wanted: Type) -> Change:
    return lambda _: f.lit(None).cast(type_to_ddl(wanted))


def _whole(it: Column, column: str) -> Column:
    exact = (it == f.floor(it)) & (f.abs(it) <= _EXACT)
    told = f.concat(
        f.lit(f"column '{column}' holds "), it.cast("string"), f.lit(", no exact number")
    )
    return f.when(it.isNull() | f.isnan(it), None).when(exact, it).otherwise(f.raise_error(told))


def _mismatch(column: str, found: DataType, wanted: str) -> Misfit:
    told = "has no type" if isinstance(found, NullType) else f"is {found.simpleString().upper()}"
    return Misfit(column, f"{told}, and {wanted} is needed", f"CAST it to {wanted}")
