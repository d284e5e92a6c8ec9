"""Columns of a file that another tool wrote, converted to the columns of a table.

Only the types decide, before a row is read. A type is converted if no value changes: integers of
another width, integers in place of fractions, a timestamp without a zone as UTC. Everything else is
refused.
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

from headgate._kernel.state import default_value
from headgate.engine.plan.spark_types import to_spark_json
from headgate.flow.names import did_you_mean
from headgate.flow.schemas.schema import (
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
# Every integer up to here has an exact double.
_EXACT = 2**53


class Misfit(Exception):  # noqa: N818 - a reason, which becomes an error where it is caught
    """A column that cannot be converted: its name, the problem, and the next step."""

    def __init__(self, column: str, problem: str, hint: str) -> None:
        super().__init__(column, problem, hint)
        self.column = column
        self.problem = problem
        self.hint = hint


def fit_row(
    actual: DataType,
    schema: Schema,
    default: Callable[[str], Column] | None = None,
    *,
    path: str = "row",
) -> Change:
    """Return the conversion of a struct of these columns to one of a schema.

    Args:
        actual: The type of the file's column; its fields may have any order, and those that are
            nullable or have a default may be missing.
        default: Returns the value of a column that the file lacks; by default the kernel does.
        path: The column's name.

    Raises:
        Misfit: A column is missing, unknown to the table, or has another type.
    """
    if isinstance(actual, NullType):
        return _absent(Struct(schema.fields))
    if not isinstance(actual, StructType):
        raise _mismatch(path, actual, f"a struct of {', '.join(schema.names)}")
    return _struct(actual, schema.fields, path, default)


def fit_version(actual: DataType, column: str, *, to: str) -> Change:
    """Return the conversion of a column to an integer, or null.

    Exact doubles are accepted: in pandas, a column with nulls has doubles.
    """
    if isinstance(actual, IntegralType | NullType):
        return lambda it: it.cast(to)
    if isinstance(actual, FloatType | DoubleType):
        return lambda it: _whole(it.cast("double"), column).cast(to)
    raise _mismatch(column, actual, to.upper())


def fit(actual: DataType, wanted: Type, path: str) -> Change | None:
    """Return the conversion of a value to another type; None if it has it already.

    Raises:
        Misfit: The conversion would lose information.
    """
    if isinstance(actual, NullType):
        return _absent(wanted)
    match wanted, actual:
        case Primitive(name), _:
            return _primitive(actual, name, path)
        case Struct(fields), StructType():
            return _struct(actual, fields, path, None)
        case ListOf(element, _), ArrayType(elementType=inner):
            return _of_list(fit(inner, element, f"{path}[]"))
        case MapOf(value, _), MapType(keyType=StringType(), valueType=inner):
            return _of_map(fit(inner, value, f"{path}[]"))
        case Unknown(), _:
            raise ValueError("a table's columns have types that are known")
        case _:
            raise _mismatch(path, actual, type_to_ddl(wanted))


def _primitive(actual: DataType, name: str, path: str) -> Change | None:
    if actual.simpleString() == name:
        return None
    if _is_taken(actual, name):
        # An overflow is an error: Spark's ANSI mode is on.
        return lambda it: it.cast(name)
    raise _mismatch(path, actual, name.upper())


def _is_taken(actual: DataType, name: str) -> bool:
    match actual:
        case IntegralType():
            return name in _NUMBERS or name.startswith("decimal")
        case FloatType() | DoubleType():
            # A tool without floats writes them as doubles.
            return name in _FRACTIONS
        case DecimalType(scale=scale):
            return name.startswith("decimal") and scale <= int(name[:-1].split(",")[1])
        case TimestampNTZType():
            return name == "timestamp"
        case _:
            return False


def _struct(
    actual: StructType,
    fields: Sequence[Field],
    path: str,
    default: Callable[[str], Column] | None,
) -> Change:
    known = {field.name for field in fields}
    for field in actual.fields:
        if field.name not in known:
            raise Misfit(
                f"{path}.{field.name}",
                "is not a declared column",
                did_you_mean(field.name, known),
            )
    there = {field.name: field.dataType for field in actual.fields}
    parts = [(field, _part(there.get(field.name), field, path, default)) for field in fields]

    def make(it: Column) -> Column:
        made = f.struct(*(change(it).alias(field.name) for field, change in parts))
        return f.when(it.isNotNull(), made)

    return make


def _part(
    actual: DataType | None, field: Field, path: str, default: Callable[[str], Column] | None
) -> Change:
    """Return the conversion of one field of a struct."""
    inner = f"{path}.{field.name}"
    if actual is not None:
        change = fit(actual, field.type, inner)
        if change is None:
            return lambda it: it.getField(field.name)
        return lambda it: change(it.getField(field.name))
    if default is not None and (field.nullable or field.default is not MISSING):
        return lambda _: default(field.name)
    if field.default is not MISSING and field.default is not None:
        return lambda _: default_value(to_spark_json(Schema((field,))))
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
    message = f.concat(
        f.lit(f"column '{column}' holds "),
        it.cast("string"),
        f.lit(", which is not an exact number"),
    )
    return f.when(it.isNull() | f.isnan(it), None).when(exact, it).otherwise(f.raise_error(message))


def _mismatch(column: str, actual: DataType, wanted: str) -> Misfit:
    got = "no type" if isinstance(actual, NullType) else actual.simpleString().upper()
    return Misfit(column, f"must be {wanted}, got {got}", f"CAST it to {wanted}")
