"""The user's DataFrame functions: found by name, and their results checked."""

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

# The column that ties a row to its record; a function must keep it.
ORIGIN = "__headgate"

DataFrameFunction = Callable[[DataFrame], DataFrame]


def get_function(name: str, *, near: Path | None = None) -> DataFrameFunction:
    """Return the function named `module:function`.

    Args:
        name: As in the flow.
        near: The flow's folder, which is also searched for modules.
    """
    module, _, attribute = name.partition(":")
    if near is not None and str(near) not in sys.path:
        sys.path.insert(0, str(near))
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise HeadgateError(
            "FUNCTION_NOT_FOUND",
            f"cannot find the function {name!r}: {error}",
            hint="name it as module:function, and put the module beside the flow's file",
        ) from error
    return cast("DataFrameFunction", function)


def apply(function: Function, rows: DataFrame, flow: CompiledFlow, near: Path | None) -> DataFrame:
    """Apply a function to the rows addressed to it, and return the results as envelopes."""
    name = label(function.node)
    given = flow.columns(rows, function.address)
    made = get_function(function.node.function, near=near)(given)
    if not isinstance(made, DataFrame) or not made.isStreaming:
        raise HeadgateError(
            "TRANSFORM_BAD_RESULT",
            f"cannot plan {name}: the function must return a DataFrame derived from its "
            f"input, got {type(made).__name__}",
            hint="return the DataFrame that the function changed",
        )
    if ORIGIN not in made.columns:
        raise HeadgateError(
            "TRANSFORM_LOST_ORIGIN",
            f"cannot plan {name}: the function must keep the column {ORIGIN!r}, which ties a "
            "row to its record",
            hint=f"use withColumn and filter, or select it too: df.select(..., '{ORIGIN}')",
        )
    _check_columns(function, made.drop(ORIGIN).schema, flow.result_schema(function.address))
    return flow.rejoin(made, function.address)


def _check_columns(function: Function, result: StructType, wanted: StructType) -> None:
    types = {field.name: field.dataType.simpleString() for field in result.fields}
    wrong = [
        (
            f"{field.name} is {types.get(field.name, 'missing')} instead of "
            f"{field.dataType.simpleString()}"
        )
        for field in wanted.fields
        if types.get(field.name) != field.dataType.simpleString()
    ]
    if wrong:
        raise HeadgateError(
            "TRANSFORM_SCHEMA",
            f"cannot plan {label(function.node)}: its result does not match the declared columns: "
            + "; ".join(wrong),
            hint=f"declare the result: .transform({function.node.function!r}, schema='…')",
        )
