"""The user's DataFrame functions, found by name and held to what they promise."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate._kernel.bridge import CompiledFlow
from headgate.engine.plan import Function
from headgate.errors import HeadgateError
from headgate.flow.operators import label

# The column that ties a row to the record it came from; a function has to hand it on.
ORIGIN = "__headgate"

DataFrameFunction = Callable[[DataFrame], DataFrame]


def get_function(name: str, *, near: Path | None = None) -> DataFrameFunction:
    """Return the function that `module:function` names.

    Args:
        name: As it is written in the flow.
        near: The flow's folder, where its modules are looked for too.
    """
    module, _, attribute = name.partition(":")
    if near is not None and str(near) not in sys.path:
        sys.path.insert(0, str(near))
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise HeadgateError(
            "FUNCTION_NOT_FOUND",
            f"cannot find the function {name!r}: {error}",
            hint="name it as module:function, and put the module beside the flow's file",
        ) from error
    return cast("DataFrameFunction", found)


def apply(function: Function, rows: DataFrame, flow: CompiledFlow, near: Path | None) -> DataFrame:
    """Run a function over the rows addressed to it, and return them on their way."""
    name = label(function.node)
    given = flow.columns(rows, function.address)
    made = get_function(function.node.function, near=near)(given)
    if not isinstance(made, DataFrame) or not made.isStreaming:
        raise HeadgateError(
            "TRANSFORM_BAD_RESULT",
            f"cannot plan {name}: the function returned {type(made).__name__}, "
            "not a DataFrame made of the one it was given",
            hint="return the DataFrame that the function changed",
        )
    if ORIGIN not in made.columns:
        raise HeadgateError(
            "TRANSFORM_LOST_ORIGIN",
            f"cannot plan {name}: the function dropped the column {ORIGIN!r}, which ties a row "
            "to its record",
            hint=f"use withColumn and filter, or select it too: df.select(..., '{ORIGIN}')",
        )
    _check_columns(function, made.drop(ORIGIN).schema, flow.result_schema(function.address))
    return flow.rejoin(made, function.address)


def _check_columns(function: Function, found: StructType, wanted: StructType) -> None:
    types = {field.name: field.dataType.simpleString() for field in found.fields}
    wrong = [
        f"{field.name} is {types.get(field.name, 'missing')}, "
        f"and {field.dataType.simpleString()} was declared"
        for field in wanted.fields
        if types.get(field.name) != field.dataType.simpleString()
    ]
    if wrong:
        raise HeadgateError(
            "TRANSFORM_SCHEMA",
            f"cannot plan {label(function.node)}: its result does not have the declared columns: "
            + "; ".join(wrong),
            hint=f"declare what it gives: .transform({function.node.function!r}, schema='…')",
        )
